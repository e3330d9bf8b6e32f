package server_test

import (
	"bytes"
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/liftlock/liftlock/internal/world/emulator"
)

// hostilePulls is how many hostile pull requests are sent, of all kinds by turns.
var hostilePulls = flag.Int("hostile", 0, "how many hostile pull requests to send to a server in a cgroup of 2 GiB; 0: leave it out; below 0: so many within less CPU time, at least one of each kind")

const (
	// groupVariable names the control group that a server of its own process joins.
	groupVariable = "LIFTLOCK_TEST_CGROUP"
	// cpuVariable is the CPU time of its workers; empty: as servers give it.
	cpuVariable = "LIFTLOCK_TEST_CPU"
	// logVariable names the file that a server of its own process logs to; empty: nowhere.
	logVariable = "LIFTLOCK_TEST_LOG"
	// chartMemory is the limit of the chart's values.
	chartMemory = 2 << 30
)

// joinGroup puts this process into a control group; "": into none.
func joinGroup(folder string) error {
	if folder == "" {
		return nil
	}
	return os.WriteFile(filepath.Join(folder, "cgroup.procs"), []byte(strconv.Itoa(os.Getpid())), 0o600)
}

// openLog is the log of a server of its own process.
func openLog(file string) (*zap.Logger, error) {
	if file == "" {
		return zap.NewNop(), nil
	}
	o := zap.NewProductionConfig()
	o.Sampling, o.OutputPaths, o.EncoderConfig.EncodeTime = nil, []string{file}, zapcore.ISO8601TimeEncoder
	return o.Build()
}

// memoryGroup is a control group with a limit on memory, of whichever version there is.
type memoryGroup struct {
	folder             string
	limit, peak, kills string // files
	used               string // begins the line of memory.stat that says what processes hold, files aside
}

// newMemoryGroup makes one; nil where that can't be done here.
func newMemoryGroup(t *testing.T, limit int64) *memoryGroup {
	t.Helper()
	for parent, g := range map[string]memoryGroup{
		"/sys/fs/cgroup":        {limit: "memory.max", peak: "memory.peak", kills: "memory.events", used: "anon"},
		"/sys/fs/cgroup/memory": {limit: "memory.limit_in_bytes", peak: "memory.max_usage_in_bytes", kills: "memory.oom_control", used: "total_rss"},
	} {
		if _, err := os.Stat(filepath.Join(parent, "cgroup.procs")); err != nil {
			continue
		}
		left, _ := filepath.Glob(filepath.Join(parent, "liftlock-test-*")) // of tests that were killed
		for _, folder := range left {
			_ = os.Remove(folder) // fails where it has processes
		}
		g.folder = filepath.Join(parent, "liftlock-test-"+strconv.Itoa(os.Getpid()))
		if os.Mkdir(g.folder, 0o755) != nil {
			continue
		}
		t.Cleanup(func() { _ = os.Remove(g.folder) }) // its processes are gone
		if os.WriteFile(filepath.Join(g.folder, g.limit), []byte(strconv.FormatInt(limit, 10)), 0o600) == nil {
			return &g
		}
	}
	return nil
}

func (m *memoryGroup) read(name string) string {
	text, _ := os.ReadFile(filepath.Join(m.folder, name))
	return strings.Join(strings.Fields(string(text)), " ")
}

// readUsed reads how many bytes its processes hold now, files aside.
func (m *memoryGroup) readUsed() int64 {
	text, _ := os.ReadFile(filepath.Join(m.folder, "memory.stat"))
	_, rest, _ := strings.Cut("\n"+string(text), "\n"+m.used+" ")
	line, _, _ := strings.Cut(rest, "\n")
	n, _ := strconv.ParseInt(line, 10, 64) // 0 where there is none
	return n
}

// hostileWorld is a forge with a server in a process of its own, and somebody who can only read.
type hostileWorld struct {
	*harness
	*loadedServer
	fork, work string
	group      *memoryGroup

	mu      sync.Mutex
	running bool
	ready   []time.Duration
	late    []string
	used    int64 // the most bytes that its processes held
}

// git runs git in the stranger's clone.
func (h *hostileWorld) git(stdin []byte, args ...string) string {
	h.harness.t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=rita", "-c", "user.email=r@example.com"}, args...)...)
	cmd.Dir, cmd.Stdin = h.work, bytes.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		h.harness.t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// treeLine is a line of git mktree's.
func treeLine(mode, kind, id, name string) string {
	return fmt.Sprintf("%s %s %s\t%s\x00", mode, kind, id, name)
}

// commitFiles commits files by their paths on top of main; one whose text begins with "->" is a link.
func (h *hostileWorld) commitFiles(salt string, files map[string]string, remove ...string) string {
	h.git(nil, "read-tree", "origin/main")
	files["salt"] = salt
	var index bytes.Buffer
	for _, name := range remove {
		fmt.Fprintf(&index, "0 %040d\t%s\x00", 0, name)
	}
	for name, text := range files {
		mode := "100644"
		if to, is := strings.CutPrefix(text, "->"); is {
			mode, text = "120000", to
		}
		fmt.Fprintf(&index, "%s %s\t%s\x00", mode, h.git([]byte(text), "hash-object", "-w", "--stdin"), name)
	}
	h.git(index.Bytes(), "update-index", "-z", "--index-info")
	return h.git(nil, "commit-tree", h.git(nil, "write-tree"), "-p", "origin/main", "-m", "Change "+salt)
}

// repeat commits folders that repeat one another: times⁸ paths.
func (h *hostileWorld) repeat(salt, mode, kind, leaf string, times int) string {
	at := treeLine(mode, kind, leaf, "")
	for range 8 {
		var b strings.Builder
		for i := range times {
			b.WriteString(strings.Replace(at, "\x00", fmt.Sprintf("n%d\x00", i), 1))
		}
		at = treeLine("040000", "tree", h.git([]byte(b.String()), "mktree", "-z"), "")
	}
	root := h.git(nil, "ls-tree", "-z", "origin/main") + strings.Replace(at, "\x00", "more\x00", 1)
	return h.git(nil, "commit-tree", h.git([]byte(root), "mktree", "-z"), "-p", "origin/main", "-m", "Repeat "+salt)
}

// hostileKinds make a head each.
var hostileKinds = []struct {
	name string
	make func(w *hostileWorld, salt string) string
}{
	{"pipeline files", func(w *hostileWorld, salt string) string {
		files := map[string]string{}
		one := "apiVersion: liftlock.dev/v1alpha1\nkind: Pipeline\nmetadata: {name: p%d-%d}\nspec:\n  carry:\n" + strings.Repeat("  - kustomizeImages: ["+strings.Repeat("a,", 999)+"a]\n", 95)
		for i := range 4 { // as many as are read
			var b strings.Builder
			for d := 0; b.Len()+len(one) < 1000<<10; d++ {
				fmt.Fprintf(&b, one+"---\n", i, d)
			}
			files[fmt.Sprintf(".liftlock/f%02d.yaml", i)] = b.String()
		}
		return w.commitFiles(salt, files, ".liftlock.yaml")
	}},
	{"expressions", func(w *hostileWorld, salt string) string {
		var b strings.Builder
		for d := range 5 {
			fmt.Fprintf(&b, "apiVersion: liftlock.dev/v1alpha1\nkind: Pipeline\nmetadata: {name: p%d}\nspec:\n  environments:\n  - name: dev\n    gates:\n", d)
			for g := range 50 {
				fmt.Fprintf(&b, "    - expression: 'size(release.images) > %d%s'\n", d*100+g, strings.Repeat(" || 1 in [1,2]", 140))
			}
			b.WriteString("---\n")
		}
		return w.commitFiles(salt, map[string]string{".liftlock.yaml": b.String()})
	}},
	{"files that repeat", func(w *hostileWorld, salt string) string {
		return w.repeat(salt, "100644", "blob", w.git([]byte(salt), "hash-object", "-w", "--stdin"), 40)
	}},
	{"folders that repeat", func(w *hostileWorld, salt string) string {
		return w.repeat(salt, "040000", "tree", w.git(nil, "hash-object", "-t", "tree", "-w", "/dev/null"), 30)
	}},
	{"many files", func(w *hostileWorld, salt string) string { // below the bound
		return w.repeat(salt, "100644", "blob", w.git([]byte(salt), "hash-object", "-w", "--stdin"), 4)
	}},
	{"a chart that never ends", func(w *hostileWorld, salt string) string {
		return w.commitFiles(salt, map[string]string{overlayPath("web", "qa") + "/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n",
			overlayPath("web", "qa") + "/templates/x.yaml": `{{ $l := list "a" }}{{ range until 40 }}{{ $l = list $l $l }}{{ end }}{{ toJson $l }}`}, overlayPath("web", "qa")+"/kustomization.yaml")
	}},
	{"a chart within itself", func(w *hostileWorld, salt string) string {
		return w.commitFiles(salt, map[string]string{overlayPath("web", "qa") + "/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n",
			overlayPath("web", "qa") + "/templates/x.yaml": `{{ $d := dict }}{{ $_ := set $d "a" $d }}{{ print $d }}`}, overlayPath("web", "qa")+"/kustomization.yaml")
	}},
	{"jsonnet", func(w *hostileWorld, salt string) string {
		return w.commitFiles(salt, map[string]string{overlayPath("web", "qa") + "/x.jsonnet": `local f(n) = if n == 0 then [1] else f(n - 1) + f(n - 1); [{apiVersion: "v1", kind: "ConfigMap", metadata: {name: "x"}, data: {x: std.toString(f(40))}}]`}, overlayPath("web", "qa")+"/kustomization.yaml")
	}},
	{"links", func(w *hostileWorld, salt string) string {
		return w.commitFiles(salt, map[string]string{overlayPath("web", "qa") + "/kustomization.yaml": "->../prod/kustomization.yaml", overlayPath("web", "prod") + "/kustomization.yaml": "->../qa/kustomization.yaml",
			"apps/web/base/deployment.yaml": "->/etc/passwd"})
	}},
	{"generators", func(w *hostileWorld, salt string) string {
		set, _, _ := w.Forge.File(repoName, "main", "argocd/shop.yaml")
		return w.commitFiles(salt, map[string]string{"argocd/shop.yaml": strings.Replace(set, "  template:", "  templatePatch: '{{ range until 20000000 }}{{ range until 20000000 }}{{ end }}{{ end }}'\n  template:", 1)})
	}},
	{"names", func(w *hostileWorld, salt string) string {
		files := map[string]string{}
		for i := range 300 {
			files[overlayPath("web", "qa")+"/"+strings.Repeat("x\n`|", 60)+strconv.Itoa(i)+"\xff<!--/"+strings.Repeat("y", 250)] = "x"
		}
		return w.commitFiles(salt, files)
	}},
	{"YAML that repeats", func(w *hostileWorld, salt string) string {
		var b strings.Builder
		b.WriteString("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n")
		for i := 1; i < 10; i++ {
			fmt.Fprintf(&b, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 10), ","))
		}
		return w.commitFiles(salt, map[string]string{"apps/web/base/kustomization.yaml": b.String()})
	}},
	{"what git refuses", func(w *hostileWorld, salt string) string {
		tree := w.git(nil, "rev-parse", "origin/main^{tree}")
		return w.git(nil, "commit-tree", w.git([]byte(treeLine("040000", "tree", tree, ".git")), "mktree", "-z"), "-p", "origin/main", "-m", "Change "+salt)
	}},
	{"a huge file", func(w *hostileWorld, salt string) string {
		return w.commitFiles(salt, map[string]string{"huge": strings.Repeat(salt, (100<<20)/len(salt))})
	}},
}

// startServer starts the server, in the control group.
func (h *hostileWorld) startServer() {
	h.loadedServer.start()
	h.awaitAnswer()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.running = true
}

func (h *hostileWorld) killServer() {
	h.mu.Lock()
	h.running = false
	h.mu.Unlock()
	h.kill()
}

// watchReady asks /readyz ten times a second until it is told to stop.
func (h *hostileWorld) watchReady(stop <-chan struct{}) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	c := &http.Client{Timeout: 10 * time.Second}
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
		}
		h.mu.Lock()
		if h.group != nil {
			h.used = max(h.used, h.group.readUsed())
		}
		if h.running {
			begun := time.Now()
			res, err := c.Get("http://" + h.address + "/readyz")
			took := time.Since(begun)
			h.ready = append(h.ready, took)
			if err != nil {
				h.late = append(h.late, begun.Format(time.TimeOnly)+" "+err.Error())
			} else if _ = res.Body.Close(); res.StatusCode != http.StatusOK || took > time.Second {
				h.late = append(h.late, fmt.Sprintf("%s %d after %s", begun.Format(time.TimeOnly), res.StatusCode, took))
			}
		}
		h.mu.Unlock()
	}
}

// awaitVerdicts waits until each hostile pull request has a verdict, and checks honest ones meanwhile.
func (h *hostileWorld) awaitVerdicts(numbers []int, checkHonest func() time.Duration) (among []time.Duration, verdicts []string) {
	t := h.harness.t
	t.Helper()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	reported := time.Now()
	for deadline := reported.Add(patience); ; <-tick.C {
		took := checkHonest()
		among = append(among, took)
		verdicts = verdicts[:0]
		var none []string
		for i, number := range numbers {
			p, err := h.Forge.Pull(repoName, number)
			h.must("read a pull request", err)
			kind, st := hostileKinds[i%len(hostileKinds)].name, liftlockStatus(p.Statuses)
			switch {
			case st.State == "":
				none = append(none, fmt.Sprintf("%s (#%d)", kind, number))
			case strings.Contains(st.Description, "process ended while"):
				t.Errorf("%s (#%d) killed the server", kind, number)
			}
			verdicts = append(verdicts, kind+": "+st.State+" "+st.Description)
		}
		switch {
		case len(none) == 0:
			return among, verdicts
		case time.Now().After(deadline):
			t.Fatalf("after %s no verdict has %s; the server's log ends with\n%s", patience, strings.Join(none, ", "), h.readLogEnd())
		case time.Since(reported) > 15*time.Second:
			reported = time.Now()
			t.Logf("no verdict yet has %s; an honest one took %s", strings.Join(none, ", "), took)
		}
	}
}

func (h *hostileWorld) logFile() string { return filepath.Join(h.harness.dir, "server.log") }

// readLogEnd reads what the server has said last.
func (h *hostileWorld) readLogEnd() string {
	text, _ := os.ReadFile(h.logFile())
	return string(text[max(0, len(text)-8<<10):])
}

// TestHostilePulls sends hostile pull requests of all kinds to a server with no more memory than
// the chart gives it, twice with a restart between. It is never killed and always ready. An honest
// pull request in another repository is checked about as soon as ever. make hostile sends 100.
func TestHostilePulls(t *testing.T) {
	if *hostilePulls == 0 {
		t.Skip("make hostile runs this")
	}
	const honest = "acme/inn"
	w := &hostileWorld{}
	w.harness = newHarness(t, harnessOptions{face: emulator.GitHub, repositoryLines: "  - {forge: hub, name: " + honest + "}\n"})
	w.loadedServer = &loadedServer{t: t, dir: w.harness.dir, address: freeAddress(t)}
	w.opts.serverLines += "listen: " + w.address + "\n"
	w.url = "http://" + w.address
	files := map[string]string{}
	for name, text := range w.repositoryFiles() {
		files[name] = strings.ReplaceAll(strings.ReplaceAll(text, repoName, honest), "shop", "inn")
	}
	w.must("make another repository", w.Forge.CreateRepo(honest, emulator.RepoOptions{Author: "linus", Message: "Overlays", Files: files, Access: map[string]emulator.Permission{w.bot: emulator.Admin, "linus": emulator.Write}}))
	w.serverOptions(zapcore.NewNopCore()) // writes the file
	w.makeHook()
	w.must("make a hook", w.Forge.AddHook(honest, "linus", emulator.Hook{URL: w.url + "/webhooks/hub", Secret: secret, Active: true}))
	var err error
	w.fork, err = w.Forge.Fork(repoName, "rita")
	w.must("fork", err)
	from, err := url.Parse(w.Forge.URL() + "/" + w.fork + ".git")
	w.must("read the fork's address", err)
	from.User = url.UserPassword("rita", "token-of-rita")
	w.work = t.TempDir()
	w.git(nil, "clone", "-q", from.String(), w.work)

	if w.group = newMemoryGroup(t, chartMemory); w.group != nil {
		w.env = append(w.env, groupVariable+"="+w.group.folder)
		t.Logf("the server is in %s, with %d MiB", w.group.folder, chartMemory>>20)
	} else {
		t.Log("no control group can be made here: the server's memory has no limit, and only each worker's has")
	}
	n := *hostilePulls
	if n < 0 {
		n = max(-n, len(hostileKinds))
		w.env = append(w.env, cpuVariable+"=3s")
	}
	w.env = append(w.env, logVariable+"="+w.logFile())
	t.Logf("the server logs to %s", w.logFile())
	w.command = []string{serveCommand, filepath.Join(w.harness.dir, "liftlock.yaml")}
	w.startServer()
	t.Cleanup(w.killServer)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() { defer close(stopped); w.watchReady(stop) }()

	checks := 0
	checkHonest := func() time.Duration {
		t.Helper()
		checks++
		branch, head := fmt.Sprintf("honest-%d", checks), ""
		head, err := w.Forge.CommitAs(honest, "linus", branch, "Honest", map[string]string{overlayPath("web", "qa") + "/kustomization.yaml": fmt.Sprintf("resources:\n  - ../../base\nimages:\n  - name: registry.example/web\n    newTag: 1.0.%d\n", checks)})
		w.must("commit", err)
		begun := time.Now()
		number, err := w.Forge.OpenPull(honest, "linus", branch, "main", "Honest", "")
		w.must("open a pull request", err)
		w.harness.waitFor("the honest pull request is checked", func() (bool, string) {
			p, err := w.Forge.Pull(honest, number)
			st := liftlockStatus(p.Statuses)
			return err == nil && p.Head == head && strings.Contains(st.Description, "touches qa"), fmt.Sprintf("%s %+v %v", head, st, err)
		})
		return time.Since(begun).Round(time.Millisecond)
	}
	checkHonest() // the repository is reached
	var usual, among []time.Duration
	for range 5 {
		usual = append(usual, checkHonest())
	}
	t.Logf("honest pull requests were checked in %s", usual)
	numbers := make([]int, n)
	var verdicts []string
	for round := range 2 {
		for i := range n {
			kind := hostileKinds[i%len(hostileKinds)]
			branch, begun := fmt.Sprintf("hostile-%d", i), time.Now()
			w.git(nil, "push", "-q", "--force", "origin", kind.make(w, fmt.Sprintf("salt %d %d", round, i))+":refs/heads/"+branch)
			if round == 0 {
				numbers[i], err = w.Forge.OpenPullFrom(repoName, "rita", w.fork, branch, "main", "Hostile: "+kind.name)
				w.must("open a pull request", err)
			}
			t.Logf("round %d: %s (#%d) is sent, within %s", round+1, kind.name, numbers[i], time.Since(begun).Round(time.Millisecond))
			if i%3 == 2 {
				among = append(among, checkHonest())
			}
		}
		var more []time.Duration
		more, verdicts = w.awaitVerdicts(numbers, checkHonest)
		among = append(among, more...)
		if round == 0 {
			w.killServer()
			w.startServer()
			checkHonest()
		}
	}
	close(stop)
	<-stopped
	for _, what := range slices.Compact(slices.Sorted(slices.Values(verdicts))) {
		t.Log(what)
	}
	slices.Sort(usual)
	slices.Sort(among)
	slices.Sort(w.ready)
	middle := usual[len(usual)/2]
	t.Logf("an honest pull request is checked in %s usually; among %d hostile ones in %s (median), %s (90 of 100), %s (longest of %d)",
		middle, n, among[len(among)/2], among[len(among)*9/10], among[len(among)-1], len(among))
	t.Logf("/readyz was asked %d times: %s (median), %s (longest)", len(w.ready), w.ready[len(w.ready)/2], w.ready[len(w.ready)-1])
	if w.group != nil {
		t.Logf("memory: at most %d MiB of processes; with what is cached of files %s bytes; %s", w.used>>20, w.group.read(w.group.peak), w.group.read(w.group.kills))
		if kills := w.group.read(w.group.kills); strings.Contains(kills, "oom_kill ") && !strings.Contains(kills+" ", "oom_kill 0 ") {
			t.Errorf("something was killed for want of memory: %s", kills)
		}
	}
	if len(w.late) > 0 {
		t.Errorf("%d times /readyz wasn't answered well within a second: %q", len(w.late), w.late[:min(3, len(w.late))])
	}
	if *hostilePulls > 0 && among[len(among)/2] > 3*middle {
		t.Errorf("an honest pull request takes %s among hostile ones, and %s usually", among[len(among)/2], middle)
	}
}
