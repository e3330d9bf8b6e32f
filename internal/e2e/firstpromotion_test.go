//go:build e2e

package e2e

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"code.gitea.io/sdk/gitea"

	"github.com/liftlock/liftlock/internal/world/walkthrough"
)

// These stand before a block of the pages that isn't simply run.
const (
	untilPrints = "until it prints this" // a reader runs it again until it does
	yourMachine = "your machine's"       // the lab has that cluster
	withHow     = "with "                // and how: one way of several
)

// doctorsDisk is how much must be free for doctor to find nothing, in bytes.
const doctorsDisk = 2 << 30

// The page, and the heading of its last part, with which somebody without a cluster begins.
const (
	firstPromotionPage = "../../docs/first-promotion.md"
	clusterHeading     = "\n## A cluster to try it on\n"
	releaseHeading     = "\n## 4. A release\n" // from here on the installation doesn't matter
)

// fewCommands is how many commands a newcomer needs, all in all.
const fewCommands = 12

// A newcomer with nothing but the pages makes a repository, has a pipeline file proposed, installs
// Liftlock and has it checked. Then they release, and merge the pull requests that Liftlock opens.
// Each command is the page's, and prints what the page shows. The two ways to install run one after
// the other, because both have the same names; the release, which takes minutes, follows the first.
// They don't run beside other stories, as the page lists every Application that there is.
func TestFirstPromotionFollowsItsPage(t *testing.T) {
	t.Run("Helm", func(t *testing.T) { runFirstPromotion(t, "Helm", true) })
	t.Run("kustomize", func(t *testing.T) { runFirstPromotion(t, "kustomize", false) })
}

func runFirstPromotion(t *testing.T, how string, releases bool) {
	r := newReader(t, how)
	var disk syscall.Statfs_t
	r.s.must(syscall.Statfs(r.s.server.dir, &disk))
	if free := disk.Bavail * uint64(disk.Bsize); free < doctorsDisk {
		t.Skipf("%d MiB are free here: doctor warns of that, and the page shows an installation without a warning", free>>20)
	}
	s := r.s
	text, err := os.ReadFile(firstPromotionPage)
	s.must(err)
	promotion, cluster, found := strings.Cut(string(text), clusterHeading)
	if !found {
		t.Fatalf("%s has no part %q", firstPromotionPage, clusterHeading)
	}
	promotion, release, found := strings.Cut(promotion, releaseHeading)
	if !found {
		t.Fatalf("%s has no part %q", firstPromotionPage, releaseHeading)
	}
	r.follow(cluster)
	if !releases {
		r.follow(promotion)
		return
	}
	promotion += release
	if n := r.follow(promotion); n > fewCommands {
		t.Errorf("the first promotion takes %d commands", n)
	}
	if image, err := s.cluster.deployedImage(s.ctx, "shop-qa", "web"); err != nil || image != "nginx:1.27.1" {
		t.Errorf("qa runs %s, %v", image, err)
	}
	if image, err := s.cluster.deployedImage(s.ctx, "shop-prod", "web"); err != nil || image != "nginx:1.27.0" {
		t.Errorf("prod runs %s, %v", image, err)
	}
}

// reader follows pages in a terminal.
type reader struct {
	s       *scenario
	how     string
	shell   *walkthrough.Shell
	in      *installation
	bin     string            // what is in the reader's PATH before all else
	pod     *pod              // nil: it doesn't run yet
	samples *strings.Replacer // the page's names and addresses, and the lab's
}

func newReader(t *testing.T, how string) *reader {
	s := newEmptyScenario(t, normalCluster, "first-"+strings.ToLower(how))
	home := filepath.Join(s.server.dir, "home")
	r := &reader{s: s, how: how, bin: filepath.Join(home, "bin"), in: &installation{s: s, namespace: "liftlock"}}
	s.must(os.MkdirAll(r.bin, 0o700))
	for name, of := range map[string]string{"liftlock": program, "helm": s.cluster.helm, "kubectl": s.cluster.kubectl} {
		s.must(os.Symlink(of, filepath.Join(r.bin, name)))
	}
	linus := s.cluster.accounts[dev]
	basic := base64.StdEncoding.EncodeToString([]byte(linus.login + ":" + linus.token))
	var err error
	r.shell, err = walkthrough.NewShell(home, "PATH="+r.bin+":"+os.Getenv("PATH"), "KUBECONFIG="+s.cluster.kubeconfig,
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=http.extraHeader", "GIT_CONFIG_VALUE_0=Authorization: Basic "+basic,
		"GIT_AUTHOR_NAME="+linus.login, "GIT_AUTHOR_EMAIL="+linus.email, "GIT_COMMITTER_NAME="+linus.login, "GIT_COMMITTER_EMAIL="+linus.email)
	s.must(err)
	begin := filepath.Join(home, "begin")
	s.clone.dir = filepath.Join(begin, "fleet")
	s.sets, s.apps = []string{"shop"}, []string{"web-dev", "web-qa", "web-prod"}
	s.must(os.WriteFile(filepath.Join(begin, "forge-token"), []byte(s.cluster.accounts[bot].token), 0o600))
	chart, err := filepath.Abs("../../deploy/chart")
	s.must(err)
	s.must(os.CopyFS(filepath.Join(begin, "base"), os.DirFS("../../deploy/kustomize/base")))
	r.samples = strings.NewReplacer(
		"https://github.com/acme/fleet.git", s.clone.url, "acme/fleet", s.server.repo,
		"oci://ghcr.io/liftlock/charts/liftlock", chart, "https://github.com/liftlock/liftlock//deploy/kustomize/base?ref=v0.1.0", "../base")
	r.removeInstallation()
	t.Cleanup(r.removeInstallation)
	r.in.offerVolume("liftlock")
	return r
}

// removeInstallation removes what the pages install, if it is there.
func (r *reader) removeInstallation() {
	kubectl := r.s.cluster.kubectl
	r.in.cleanUp(
		[]string{kubectl, "delete", "role,rolebinding", "--namespace", "argocd", "--selector", "app.kubernetes.io/name=liftlock,app.kubernetes.io/instance=liftlock"},
		[]string{kubectl, "delete", "namespace", r.in.namespace, "--ignore-not-found"},
		[]string{kubectl, "delete", "persistentvolume", "liftlock", "--ignore-not-found"})
}

// sampleForge is the line of the page's server files that says which forge it is.
var sampleForge = regexp.MustCompile(`(?m)^( *)type: github .*$`)

// adapt writes the lab's names and addresses for the page's.
func (r *reader) adapt(text string) string {
	return r.samples.Replace(sampleForge.ReplaceAllString(text, "${1}type: gitea\n${1}url: "+r.s.cluster.giteaURL))
}

// commandEnd is where a command ends, in a line with others too.
var commandEnd = regexp.MustCompile(`\n|;|&&|\|\|?`)

// follow does what a part of the page says, and gives how many commands that were.
func (r *reader) follow(part string) (commands int) {
	s := r.s
	s.Helper()
	blocks, err := walkthrough.Parse(r.adapt(part))
	if err != nil {
		s.Fatalf("%s: %v", firstPromotionPage, err)
	}
	for _, b := range blocks {
		switch how, several := strings.CutPrefix(b.Directive, withHow); {
		case several && how != r.how, b.Directive == yourMachine:
			continue
		case b.File != "":
			folder, err := r.shell.Folder()
			s.must(err)
			file := filepath.Join(folder, filepath.FromSlash(b.File))
			s.must(os.MkdirAll(filepath.Dir(file), 0o750))
			s.must(os.WriteFile(file, []byte(b.Text), 0o600))
		default:
			commands += len(commandEnd.FindAllString(b.Text, -1))
			r.do(b)
		}
	}
	return commands
}

// forgeWords is what a forge says to a push, each in its own words.
var forgeWords = regexp.MustCompile(`(?m)^remote: .*\n`)

// do runs a block, and holds that it prints what the page shows. Its line is the part's.
func (r *reader) do(b walkthrough.Block) {
	s := r.s
	s.Helper()
	if r.pod == nil && strings.Contains(b.Text, " exec ") {
		r.pod = r.in.runPod("liftlock")
		script := filepath.Join(r.bin, "kubectl")
		s.must(os.Remove(script))
		s.must(os.WriteFile(script, []byte(r.pod.kubectlScript()), 0o700))
	}
	wants := walkthrough.PrintsPattern(b.Prints)
	start := time.Now()
	for {
		printed, err := r.shell.Run(s.ctx, b.Text)
		printed = forgeWords.ReplaceAllString(printed, "")
		if err == nil && wants.MatchString(printed) {
			s.Logf("%5.1fs  line %d:\n%s%s", time.Since(start).Seconds(), b.Line, b.Text, printed)
			return
		}
		if b.Directive != untilPrints || time.Since(start) > 2*patience || s.ctx.Err() != nil {
			s.Fatalf("line %d: these commands\n%s\nend with %v and print\n%s\nnot\n%s", b.Line, b.Text, err, printed, b.Prints)
		}
		if r.pod != nil {
			r.mergeOpened("qa")
		}
		time.Sleep(pollInterval)
	}
}

// mergeOpened merges what Liftlock has opened into an environment, as the page says.
func (r *reader) mergeOpened(environment string) {
	pulls, err := r.s.liftlockPulls(promotionBranch("web", environment))
	r.s.must(err)
	for _, p := range pulls {
		if p.State == gitea.StateOpen {
			r.s.mergeAs(ada, p.Index)
		}
	}
}
