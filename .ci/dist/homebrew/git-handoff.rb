# Installs the programs of a release, which are for Linux only.
class GitHandoff < Formula
  desc "Hand work from one agent, person or machine to the next, with proof"
  homepage "@homepage@"
  version "@version@"
  license any_of: ["MIT", "Apache-2.0"]

  depends_on "bubblewrap"
  depends_on "curl"
  depends_on "git"
  depends_on :linux

  on_linux do
@archives@
  end

  def install
    # Either program finds the other beside it.
    bin.install "git-handoff", "git-handoff-attempt"
    man1.install Dir["man/man1/*.1"]
    bash_completion.install "completions/git-handoff.bash" => "git-handoff"
    zsh_completion.install "completions/git-handoff.zsh" => "_git-handoff"
    fish_completion.install "completions/git-handoff.fish"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/git-handoff --version")
    system "git", "init", "--quiet"
    system "git", "-c", "user.name=Test", "-c", "user.email=test@localhost",
           "commit", "--quiet", "--allow-empty", "--message=Start"
    assert_match " intact, ", shell_output("#{bin}/git-handoff record -- touch made")
  end
end
