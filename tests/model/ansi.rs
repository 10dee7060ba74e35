//! Control sequences of terminals are taken out whole.

use git_handoff::model::ansi::without;

#[test]
fn sequences_go_whole() {
    for (text, clean) in [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b[1;38;5;196mbold\x1b[m", "bold"),
        ("\x1b[?25l\x1b[2K\x1b[1Gline\x1b[?25h", "line"),
        ("\x1b[4:3mcurly\x1b[0 q", "curly"),
        ("\u{9b}31mred", "red"),
        ("\x1b]0;a title\x07text", "text"),
        ("\x1b]8;;https://example.org/\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\u{9d}0;a title\u{9c}text", "text"),
        ("\x1bPq#0;2;0;0;0\x1b\\picture", "picture"),
        ("\x1b_hidden\x1b\\\x1b^private\x1b\\\x1bXstring\x1b\\seen", "seen"),
        ("\x1b(B\x1b)0\x1b%Gset\x1b#8", "set"),
        ("\x1b7\x1b8\x1bc\x1b=\x1b>\x1bMshort", "short"),
        ("\x1b]0;left open\x1b[31mred", "red"),
        ("\x1b]0;left open\nnext line", "\nnext line"),
        ("\x1b[31", ""),
        ("\x1b[31\nnext", "\nnext"),
        ("ends\x1b", "ends"),
        ("[0m and (B are text", "[0m and (B are text"),
        ("ä\x1b[1mö\x1b[0mü\ttab\r\n", "äöü\ttab\r\n"),
    ] {
        assert_eq!(without(text), clean, "{text:?}");
    }
}
