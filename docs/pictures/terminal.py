#!/usr/bin/env python3
"""Draws what a command prints in a terminal as SVG: standard input, with colours as escape sequences, below the command.

    terminal.py COMMAND <OUTPUT >PICTURE
"""
import html
import re
import sys

COLUMNS, SIZE, LINE, MARGIN = 80, 14, 20, 16
WIDTH = 8.43
COLOURS = {"31": "#ff7b72", "32": "#7ee787", "33": "#e3b341", "34": "#79c0ff", "35": "#d2a8ff", "36": "#76e3ea", "2": "#8b949e"}
TEXT, BACKGROUND = "#e6edf3", "#161b22"


def spans(line):
    """Yields the stretches of a line: their column, their text, their colour and whether they are bold."""
    column, colour, bold = 0, TEXT, False
    for escape, text in re.findall(r"\x1b\[([0-9;]*)m|([^\x1b]+)", line):
        if text:
            yield column, text, colour, bold
            column += len(text)
            continue
        for code in escape.split(";"):
            if code in ("", "0"):
                colour, bold = TEXT, False
            elif code == "1":
                bold = True
            else:
                colour = COLOURS.get(code, colour)


def main():
    lines = [f"\x1b[2m{sys.argv[1]}\x1b[0m", *sys.stdin.read().rstrip("\n").split("\n")]
    widest = max(COLUMNS, *(len(re.sub(r"\x1b\[[0-9;]*m", "", line)) for line in lines))
    width, height = round(2 * MARGIN + widest * WIDTH), 2 * MARGIN + len(lines) * LINE
    print(f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
          f'font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, \'DejaVu Sans Mono\', monospace" font-size="{SIZE}" xml:space="preserve">')
    print(f"<title>{html.escape(sys.argv[1].removeprefix('$ '))}</title>")
    print(f'<rect width="{width}" height="{height}" rx="8" fill="{BACKGROUND}"/>')
    for number, line in enumerate(lines):
        y = MARGIN + number * LINE + SIZE
        for column, text, colour, bold in spans(line):
            # Spaces move the text that follows; the length keeps columns aligned in every font.
            for word in re.finditer(r"\S+(?: \S+)*", text):
                x = MARGIN + (column + word.start()) * WIDTH
                weight = ' font-weight="bold"' if bold else ""
                print(f'<text x="{x:.1f}" y="{y}" fill="{colour}"{weight} textLength="{len(word[0]) * WIDTH:.1f}" '
                      f'lengthAdjust="spacingAndGlyphs">{html.escape(word[0])}</text>')
    print("</svg>")


if __name__ == "__main__":
    main()
