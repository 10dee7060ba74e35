export const name = "shared";
