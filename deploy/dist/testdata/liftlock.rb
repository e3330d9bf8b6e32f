class Liftlock < Formula
  desc "Moves releases from environment to environment through pull requests"
  homepage "https://github.com/liftlock/liftlock"
  version "1.2.3"
  license "Apache-2.0"

  on_macos do
    on_intel do
      url "https://github.com/liftlock/liftlock/releases/download/v1.2.3/liftlock-darwin-amd64.tar.gz"
      sha256 "1111111111111111111111111111111111111111111111111111111111111111"
    end
    on_arm do
      url "https://github.com/liftlock/liftlock/releases/download/v1.2.3/liftlock-darwin-arm64.tar.gz"
      sha256 "2222222222222222222222222222222222222222222222222222222222222222"
    end
  end

  on_linux do
    on_intel do
      url "https://github.com/liftlock/liftlock/releases/download/v1.2.3/liftlock-linux-amd64.tar.gz"
      sha256 "3333333333333333333333333333333333333333333333333333333333333333"
    end
    on_arm do
      url "https://github.com/liftlock/liftlock/releases/download/v1.2.3/liftlock-linux-arm64.tar.gz"
      sha256 "4444444444444444444444444444444444444444444444444444444444444444"
    end
  end

  def install
    bin.install "liftlock"
    man1.install Dir["man/man1/*.1"]
    bash_completion.install "completions/liftlock.bash" => "liftlock"
    zsh_completion.install "completions/_liftlock"
    fish_completion.install "completions/liftlock.fish"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/liftlock version")
  end
end
