# Installs a formula into a folder and runs its test: ruby install.rb FORMULA PREFIX
#
# A small stand-in for Homebrew, which cannot be installed from a package registry. It knows the words
# that our formula uses and fails on every other one. It downloads `file:` URLs only.
require "digest"
require "English"
require "fileutils"
require "pathname"
require "tmpdir"
require "uri"

# A folder of the installation, as `bin` or `man1`.
class Keg < Pathname
  def install(*files)
    mkpath
    files.flatten.each do |file|
      pairs = file.is_a?(Hash) ? file : { file => File.basename(file) }
      pairs.each { |from, to| FileUtils.mv(from, self / to) }
    end
  end

  def /(other) = Keg.new(super)
end

# The words of a formula's class and of its methods.
class Formula
  FIELDS = %i[desc homepage version license url sha256].freeze
  MACHINE = RbConfig::CONFIG["host_cpu"]

  class << self
    FIELDS.each do |field|
      define_method(field) do |value = nil|
        @fields ||= {}
        value.nil? ? @fields.fetch(field) : @fields[field] = value
      end
    end

    def depends_on(*) = nil
    def on_linux = yield
    def on_intel = MACHINE == "x86_64" && yield
    def on_arm = MACHINE == "aarch64" && yield
    def test(&block) = block ? @test = block : @test
  end

  attr_reader :prefix

  def initialize(prefix)
    @prefix = Keg.new(prefix)
  end

  def version = self.class.version
  def bin = prefix / "bin"
  def man1 = prefix / "share/man/man1"
  def bash_completion = prefix / "etc/bash_completion.d"
  def zsh_completion = prefix / "share/zsh/site-functions"
  def fish_completion = prefix / "share/fish/vendor_completions.d"

  def system(command, *arguments)
    Kernel.system(command.to_s, *arguments) || raise("#{command} failed")
  end

  def shell_output(command)
    output = `#{command}`
    $CHILD_STATUS.success? ? output : raise("#{command} failed")
  end

  def assert_match(expected, actual)
    raise "there is no #{expected.inspect} in #{actual.inspect}" unless actual.include?(expected)
  end

  def fetch_and_install
    address = URI.parse(self.class.url)
    raise "#{address} is not a file: URL" unless address.scheme == "file"

    actual = Digest::SHA256.file(address.path).hexdigest
    raise "#{address} has the SHA-256 #{actual}, and the formula #{self.class.sha256}" if actual != self.class.sha256

    Dir.mktmpdir do |work|
      system "tar", "--extract", "--gzip", "--strip-components=1", "--directory", work, "--file", address.path
      Dir.chdir(work) { install }
    end
  end

  def try
    Dir.mktmpdir { |work| Dir.chdir(work) { instance_exec(&self.class.test) } }
  end
end

formula, prefix = ARGV
load File.expand_path(formula)
installed = GitHandoff.new(File.expand_path(prefix))
installed.fetch_and_install
installed.try
