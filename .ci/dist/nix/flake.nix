{
  description = "@description@";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs =
    { self, nixpkgs }:
    let
      # The archives of the release, by the system that they are for.
      archives = {
@archives@
      };
      package =
        system: archive:
        let
          pkgs = nixpkgs.legacyPackages.${system};
        in
        pkgs.stdenvNoCC.mkDerivation {
          pname = "git-handoff";
          version = "@version@";
          src = pkgs.fetchurl archive;
          # The programs are linked statically, and their bytes are those of the release.
          dontFixup = true;
          installPhase = ''
            runHook preInstall
            install -D -m 755 -t $out/bin git-handoff git-handoff-attempt
            install -D -m 644 -t $out/share/man/man1 man/man1/*.1
            install -D -m 644 completions/git-handoff.bash $out/share/bash-completion/completions/git-handoff
            install -D -m 644 completions/git-handoff.zsh $out/share/zsh/site-functions/_git-handoff
            install -D -m 644 -t $out/share/fish/vendor_completions.d completions/git-handoff.fish
            runHook postInstall
          '';
          meta = {
            description = "@description@";
            homepage = "@homepage@";
            license = [ pkgs.lib.licenses.mit pkgs.lib.licenses.asl20 ];
            sourceProvenance = [ pkgs.lib.sourceTypes.binaryNativeCode ];
            platforms = builtins.attrNames archives;
            mainProgram = "git-handoff";
          };
        };
    in
    {
      packages = builtins.mapAttrs (system: archive: { default = package system archive; }) archives;
    };
}
