package story_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/world/emulator"
)

// postgresServer is a PostgreSQL server of the test's own, which it may kill.
type postgresServer struct {
	t        *testing.T
	programs string // their folder
	dir      string
	port     string
	log      *os.File
	account  *syscall.SysProcAttr // whose process it is: PostgreSQL refuses to be root's

	cmd   *exec.Cmd
	ended chan struct{} // closed when cmd has ended

	mu     sync.Mutex
	away   bool
	backAt time.Time // when it was last back
	kills  int
}

// postgresPatience is how long a PostgreSQL server may take to come back.
const postgresPatience = time.Minute

// startPostgres starts a server for the test. The test is skipped where there are no
// programs to start one with: a database that only has an address can't be killed.
func startPostgres(t *testing.T) *postgresServer {
	t.Helper()
	programs, ok := findPostgres()
	if !ok {
		t.Skip("no PostgreSQL server is installed (neither in the path nor in /usr/lib/postgresql), and this test kills one")
	}
	// t.TempDir can't be entered by another account.
	dir, err := os.MkdirTemp("", "liftlock-postgres-")
	if err != nil {
		t.Fatal(err)
	}
	address, err := emulator.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(address)
	p := &postgresServer{t: t, programs: programs, dir: dir, port: port, account: &syscall.SysProcAttr{}}
	t.Cleanup(func() {
		p.stop()
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("clean up: %v", err)
		}
	})
	p.giveToAccount()
	if p.log, err = os.Create(filepath.Join(dir, "server.log")); err != nil {
		t.Fatal(err)
	}
	made := p.command("initdb", "-D", p.data(), "-U", "postgres", "--auth", "trust", "--encoding", "UTF8", "--locale", "C", "--no-sync")
	if out, err := made.CombinedOutput(); err != nil {
		t.Fatalf("make a PostgreSQL database: %v\n%s", err, out)
	}
	p.start()
	return p
}

// findPostgres finds the folder of the newest server's programs.
func findPostgres() (dir string, ok bool) {
	if program, err := exec.LookPath("initdb"); err == nil {
		if program, err = filepath.EvalSymlinks(program); err == nil { // the others may not be linked
			return filepath.Dir(program), true
		}
	}
	all, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb") // Debian's
	if err != nil || len(all) == 0 {
		return "", false
	}
	version := func(program string) int {
		n, err := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(program))))
		if err != nil {
			return 0
		}
		return n
	}
	return filepath.Dir(slices.MaxFunc(all, func(a, b string) int { return version(a) - version(b) })), true
}

// giveToAccount lets PostgreSQL's own account use the folder where the test is root's.
func (p *postgresServer) giveToAccount() {
	p.t.Helper()
	if os.Getuid() != 0 {
		return
	}
	account, err := user.Lookup("postgres")
	if err != nil {
		p.t.Skipf("PostgreSQL doesn't run as root: %v", err)
	}
	uid, err := strconv.Atoi(account.Uid)
	if err != nil {
		p.t.Fatal(err)
	}
	gid, err := strconv.Atoi(account.Gid)
	if err != nil {
		p.t.Fatal(err)
	}
	if err := os.Chown(p.dir, uid, gid); err != nil {
		p.t.Fatal(err)
	}
	p.account.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

func (p *postgresServer) data() string { return filepath.Join(p.dir, "data") }

// address is the database's for Liftlock.
func (p *postgresServer) address() string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%s/postgres?sslmode=disable", p.port)
}

func (p *postgresServer) command(program string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(p.programs, program), args...)
	cmd.Dir, cmd.SysProcAttr = p.dir, p.account
	return cmd
}

// start starts the server and waits until it takes connections. The processes that the last one had
// started end by themselves, but not at once, and until then there is no other.
func (p *postgresServer) start() {
	p.t.Helper()
	deadline := time.Now().Add(postgresPatience)
	for !p.tryStart(deadline) {
		if time.Now().After(deadline) {
			text, err := os.ReadFile(p.log.Name())
			p.t.Fatalf("PostgreSQL doesn't start: %s %v", text, err)
		}
	}
	p.recordAway(false)
}

// tryStart starts the server; false when it ended again instead of taking connections.
func (p *postgresServer) tryStart(deadline time.Time) bool {
	p.t.Helper()
	// Nothing is synced: it is processes that die here, and what they wrote is the
	// kernel's by then.
	p.cmd = p.command("postgres", "-D", p.data(), "-p", p.port, "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="+p.dir,
		"-c", "fsync=off", "-c", "max_connections=200")
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	if err := p.cmd.Start(); err != nil {
		p.t.Fatalf("start PostgreSQL: %v", err)
	}
	ended, cmd := make(chan struct{}), p.cmd
	p.ended = ended
	go func() {
		_ = cmd.Wait() // it is killed
		close(ended)
	}()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for time.Now().Before(deadline) {
		if p.command("pg_isready", "-q", "-h", "127.0.0.1", "-p", p.port).Run() == nil {
			return true
		}
		select {
		case <-ended:
			<-tick.C
			return false
		case <-tick.C:
		}
	}
	return false
}

// restart ends the server by a signal and starts another one on its data.
func (p *postgresServer) restart(by syscall.Signal) {
	p.t.Helper()
	p.kill(by)
	p.start()
}

// kill ends the server by a signal. SIGKILL kills it, SIGQUIT is its immediate shutdown, and SIGINT
// the fast one, which ends transactions and then records where it is.
func (p *postgresServer) kill(by syscall.Signal) {
	p.t.Helper()
	p.recordAway(true)
	if err := p.cmd.Process.Signal(by); err != nil {
		p.t.Errorf("kill PostgreSQL: %v", err)
	}
	<-p.ended
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kills++
}

func (p *postgresServer) recordAway(away bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.away, p.backAt = away, time.Now()
}

// wasAwaySince says whether the server was away at some time after a time.
func (p *postgresServer) wasAwaySince(t time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.away || p.backAt.After(t)
}

func (p *postgresServer) killCount() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.kills
}

func (p *postgresServer) stop() {
	if p.cmd != nil && p.cmd.Process != nil {
		_ = p.cmd.Process.Signal(syscall.SIGQUIT) // it may have ended
		<-p.ended
	}
	if p.log != nil {
		_ = p.log.Close() // nobody reads it any more
	}
}
