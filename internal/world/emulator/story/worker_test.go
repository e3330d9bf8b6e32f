package story_test

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/server"
	"github.com/liftlock/liftlock/internal/server/config"
	"github.com/liftlock/liftlock/internal/world/evaluatetest"
	"github.com/liftlock/liftlock/internal/world/intercept"
)

// The child is this test's own binary, told by its environment to be a server
// that dies at a point.
const (
	configVariable = "LIFTLOCK_TEST_SERVER"
	dieAtVariable  = "LIFTLOCK_TEST_DIE_AT"  // the point at which the process kills itself
	stopAtVariable = "LIFTLOCK_TEST_STOP_AT" // the point at which the process stands still until it is told to go on
	pointsVariable = "LIFTLOCK_TEST_POINTS"  // a file to which every point that is passed is appended
	leaseVariable  = "LIFTLOCK_TEST_LEASE"   // server.Seams.Lease
)

func TestMain(m *testing.M) {
	evaluatetest.ServeIfWorker()
	if file := os.Getenv(configVariable); file != "" {
		os.Exit(runWorker(file))
	}
	flag.Parse()
	if err := flag.Set("test.parallel", strconv.Itoa(runsPerCore*runtime.GOMAXPROCS(0))); err != nil {
		os.Exit(printError(err))
	}
	os.Exit(m.Run())
}

// runsPerCore is how many stories a core tells at once: they mostly wait.
const runsPerCore = 2

// startedLine is the line that a child writes before anything else.
const startedLine = "started"

// crashPoints counts how often each place was passed and dies at the chosen one.
type crashPoints struct {
	mu     sync.Mutex
	before map[string]int
	after  map[string]int
	dieAt  string
	stopAt string
	out    *os.File
}

// reach counts a place and names the point "place#n before" or "… after"; the
// process ends there if it is the one.
func (cp *crashPoints) reach(place string, before bool) {
	cp.mu.Lock()
	defer cp.mu.Unlock()
	name := cp.count(place, before)
	cp.appendLine(name)
	write := ""
	if !strings.HasPrefix(place, "store ") {
		write = cp.count(anyWrite, before)
	}
	if name == cp.stopAt {
		stopProcess()
	}
	if name == cp.dieAt || write != "" && write == cp.dieAt {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // the signal is on its way
	}
}

// stopProcess has the process stand still until somebody sends it SIGCONT.
func stopProcess() {
	goOn := make(chan os.Signal, 1)
	signal.Notify(goOn, syscall.SIGCONT)
	defer signal.Stop(goOn)
	_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	<-goOn
}

// anyWrite is the place of every write to the forge and every push, counted together.
const anyWrite = "write"

// count counts a place and names the point.
func (cp *crashPoints) count(place string, before bool) string {
	seen, when := cp.after, "after"
	if before {
		seen, when = cp.before, "before"
	}
	seen[place]++
	return fmt.Sprintf("%s#%d %s", place, seen[place], when)
}

func (cp *crashPoints) appendLine(name string) {
	if cp.out != nil {
		fmt.Fprintf(cp.out, "%d %s\n", time.Now().UnixNano(), name)
	}
}

// bracketWrite passes the two points of one write.
func (cp *crashPoints) bracketWrite(format string, args ...any) func() {
	place := fmt.Sprintf(format, args...)
	cp.reach(place, true)
	return func() { cp.reach(place, false) }
}

// runWorker runs the server with points at every forge write, push and commit.
func runWorker(file string) int {
	p := &crashPoints{before: map[string]int{}, after: map[string]int{}, dieAt: os.Getenv(dieAtVariable), stopAt: os.Getenv(stopAtVariable)}
	if name := os.Getenv(pointsVariable); name != "" {
		f, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return printError(err)
		}
		p.out = f
	}
	p.appendLine(startedLine)
	go func() { // nobody is left who would end us
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
	cfg, err := config.Load(file, os.LookupEnv)
	if err != nil {
		return printError(err)
	}
	var lease time.Duration
	if text := os.Getenv(leaseVariable); text != "" {
		if lease, err = time.ParseDuration(text); err != nil {
			return printError(err)
		}
	}
	enc := zap.NewProductionEncoderConfig()
	enc.EncodeTime = zapcore.RFC3339NanoTimeEncoder
	log := zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(enc), zapcore.AddSync(os.Stderr), zapcore.InfoLevel))
	s, err := server.New(context.Background(), server.Options{Config: cfg, Log: log, Version: "test", Seams: server.Seams{
		Forge:      p.crashingForge,
		OnCommit:   func(name string, before bool) { p.reach("store "+name, before) },
		BeforePush: func(ref string) { p.reach("push "+ref, true) },
		AfterPush:  func(ref string) { p.reach("push "+ref, false) },
		Lease:      lease,
	}})
	if err != nil {
		return printError(err)
	}
	if err := s.Run(context.Background()); err != nil {
		return printError(err)
	}
	return 0
}

func printError(err error) int {
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// reachedPoint is one line of the file of points.
type reachedPoint struct {
	at   time.Time
	name string
}

// readReachedPoints reads the file of points; a line that a dying child cut off is
// left out.
func readReachedPoints(t *testing.T, file string) []reachedPoint {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out []reachedPoint
	for line := range strings.Lines(string(text)) {
		stamp, name, ok := strings.Cut(line, " ")
		ns, err := strconv.ParseInt(stamp, 10, 64)
		if ok && err == nil && strings.HasSuffix(name, "\n") {
			out = append(out, reachedPoint{at: time.Unix(0, ns), name: strings.TrimSpace(name)})
		}
	}
	return out
}

// forgePoints are the forge's writes that have points, as those are called.
var forgePoints = map[string]string{
	"CreatePullRequest": "create", "UpdatePullRequest": "update", "Merge": "merge", "LeaveQueue": "leave queue", "DeleteBranch": "delete",
	"AddLabels": "label", "RemoveLabel": "unlabel", "CreateComment": "comment", "UpdateComment": "edit comment", "React": "react", "SetStatus": "status",
	"CreateDeployment": "create deployment", "SetDeploymentStatus": "set deployment", "EnsureHook": "hook",
}

// crashingForge passes a point before and after every write to the forge. It reads pull requests one
// by one.
func (cp *crashPoints) crashingForge(f forge.Forge) forge.Forge {
	return struct{ forge.Forge }{intercept.New(f, func(_ context.Context, c intercept.Call, do func() error) error {
		point, ok := forgePoints[c.Name]
		if !ok {
			return do()
		}
		what := c.Subject
		if c.Number != 0 {
			what = fmt.Sprintf("#%d", c.Number)
		}
		defer cp.bracketWrite("%s", strings.TrimSpace("forge "+point+" "+what))()
		return do()
	})}
}
