package server_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"flag"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-github/v60/github"

	"github.com/liftlock/liftlock/internal/server"
	"github.com/liftlock/liftlock/internal/server/config"
)

// loadFor is how long each load lasts; 0 leaves them out.
var loadFor = flag.Duration("load", 0, "how long to load the server in each of the load tests")

// serveCommand makes the test's own program a server, which can be killed.
const serveCommand = "serve-under-load"

// runLoadedServer runs the server of a file until it is killed, or until nobody is
// left who would.
func runLoadedServer(file string) error {
	go exitWithParent()
	cfg, err := config.Load(file, os.LookupEnv)
	if err != nil {
		return err
	}
	if err := joinGroup(os.Getenv(groupVariable)); err != nil {
		return err
	}
	log, err := openLog(os.Getenv(logVariable))
	if err != nil {
		return err
	}
	o := server.Options{Config: cfg, Log: log, Version: "test"}
	if o.Seams.Sandbox.CPU, err = time.ParseDuration(cmp.Or(os.Getenv(cpuVariable), "0s")); err != nil {
		return err
	}
	s, err := server.New(context.Background(), o)
	if err != nil {
		return err
	}
	return s.Run(context.Background())
}

// plainCommand makes the test's own program one of the plain handlers.
const plainCommand = "serve-without-storing"

// plainHandlers are compared with the server on a machine that may be busy: they answer deliveries
// and store nothing. The second does the work of bots that are made with go-githubapp.
var plainHandlers = map[string]func(r *http.Request) error{
	"reading and verifying": func(r *http.Request) error {
		_, err := github.ValidatePayload(r, []byte(secret))
		return err
	},
	"reading, verifying and decoding": func(r *http.Request) error {
		body, err := github.ValidatePayload(r, []byte(secret))
		if err != nil {
			return err
		}
		_, err = github.ParseWebHook(github.WebHookType(r), body)
		return err
	},
}

// runPlainHandler runs a plain handler on an address until it is killed, or until nobody is
// left who would.
func runPlainHandler(name, address string) error {
	go exitWithParent()
	handle, ok := plainHandlers[name]
	if !ok {
		return fmt.Errorf("there is no plain handler for %s", name)
	}
	return http.ListenAndServe(address, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			return // it is asked whether it is there
		}
		if err := handle(r); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
	}))
}

// exitWithParent ends the process when the test does that started it.
func exitWithParent() {
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(1)
}

// loadedServer is a server in a process of its own, of which nothing but webhooks is
// wanted: its forge can't be reached.
type loadedServer struct {
	t       *testing.T
	dir     string
	command []string
	env     []string // besides this process's
	address string
	cmd     *exec.Cmd
	cpu     time.Duration // of the processes that have ended
}

func newLoadedServer(t *testing.T) *loadedServer {
	t.Helper()
	if *loadFor == 0 {
		t.Skip("make load runs this")
	}
	s := &loadedServer{t: t, dir: t.TempDir(), address: freeAddress(t)}
	s.command = []string{serveCommand, filepath.Join(s.dir, "liftlock.yaml")}
	s.write("kubeconfig", `{apiVersion: v1, kind: Config, current-context: x, contexts: [{name: x, context: {cluster: x, user: x}}], clusters: [{name: x, cluster: {server: "http://127.0.0.1:1"}}], users: [{name: x, user: {}}]}`)
	s.write("liftlock.yaml", fmt.Sprintf(`listen: %s
dataDir: %s
forges: [{name: hub, type: github, url: "http://127.0.0.1:1", auth: {token: x}, webhookSecrets: [%s]}]
repositories: [{forge: hub, name: %s}]
argocd: [{name: hub, kubernetes: {kubeconfig: kubeconfig}}]
`, s.address, filepath.Join(s.dir, "data"), secret, repoName))
	t.Cleanup(s.kill)
	return s
}

// newPlainServer is a plain handler in a process of its own, which has begun.
func newPlainServer(t *testing.T, name string) *loadedServer {
	t.Helper()
	s := &loadedServer{t: t, address: freeAddress(t)}
	s.command = []string{plainCommand, name, s.address}
	s.start()
	t.Cleanup(s.kill)
	s.awaitAnswer()
	return s
}

func (l *loadedServer) write(name, text string) {
	l.t.Helper()
	if err := os.WriteFile(filepath.Join(l.dir, name), []byte(text), 0o600); err != nil {
		l.t.Fatal(err)
	}
}

// start starts the process; it answers a little later.
func (l *loadedServer) start() {
	l.t.Helper()
	l.cmd = exec.Command(os.Args[0], l.command...)
	l.cmd.Env = append(os.Environ(), l.env...)
	l.cmd.Stderr = os.Stderr
	if _, err := l.cmd.StdinPipe(); err != nil { // closed by the system when this process ends
		l.t.Fatal(err)
	}
	if err := l.cmd.Start(); err != nil {
		l.t.Fatal(err)
	}
}

// kill ends the process as a crash does.
func (l *loadedServer) kill() {
	if l.cmd != nil {
		_ = l.cmd.Process.Signal(syscall.SIGKILL) // it may be gone
		_ = l.cmd.Wait()                          // it was killed
		l.cpu += l.cmd.ProcessState.UserTime() + l.cmd.ProcessState.SystemTime()
		l.cmd = nil
	}
}

// awaitAnswer waits until the server answers.
func (l *loadedServer) awaitAnswer() {
	l.t.Helper()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); ; <-tick.C {
		res, err := http.Get("http://" + l.address + "/healthz")
		if err == nil {
			_ = res.Body.Close() // its status is enough
			return
		}
		if time.Now().After(deadline) {
			l.t.Fatal(err)
		}
	}
}

// storedDeliveries are the ids of the deliveries in the database of a server that is gone.
func (l *loadedServer) storedDeliveries() map[string]bool {
	l.t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(l.dir, "data", "liftlock.db"))
	if err != nil {
		l.t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.Query("SELECT id FROM deliveries")
	if err != nil {
		l.t.Fatal(err)
	}
	defer rows.Close()
	ids := map[string]bool{}
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			l.t.Fatal(err)
		}
		ids[id] = true
	}
	if err := rows.Err(); err != nil {
		l.t.Fatal(err)
	}
	return ids
}

// pullPayload is a pull_request payload of about so many bytes; as in GitHub's, most
// of them stand between what is read.
func pullPayload(number, size int) []byte {
	var links bytes.Buffer
	for i := 0; links.Len() < size; i++ {
		fmt.Fprintf(&links, `"link_%d_url":"https://api.github.example/repos/%s/issues/%d{/number}","label_%d":{"id":%d,"name":"a \"label\"","default":false},`, i, repoName, i, i, i)
	}
	return fmt.Appendf(nil, `{"action":"synchronize","number":%d,"pull_request":{%s"number":%d,"head":{"ref":"liftlock/shop/qa/web","sha":"%040d","repo":{"full_name":%q}}},"repository":{"full_name":%q},"sender":{"login":"linus"}}`,
		number, links.String(), number, number, repoName, repoName)
}

// signedRequest is a delivery as it goes over the line, but for its id.
type signedRequest struct{ head, body []byte }

func newSignedRequest(body []byte, key string) signedRequest {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write(body)
	return signedRequest{body: body, head: fmt.Appendf(nil, "POST /webhooks/hub HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nX-GitHub-Event: pull_request\r\nX-Hub-Signature-256: sha256=%s\r\nContent-Length: %d\r\nX-GitHub-Delivery: ",
		hex.EncodeToString(mac.Sum(nil)), len(body))}
}

// sender is one connection of a forge.
type sender struct {
	address string
	from    net.Addr // nil: any
	conn    net.Conn
	in      *bufio.Reader
}

// answerTimeout is how long a sender waits, as forges do.
const answerTimeout = 10 * time.Second

// send delivers and gives the answer's status; after an error the next one goes over a
// new connection.
func (s *sender) send(r signedRequest, id string) (status int, err error) {
	defer func() {
		if err != nil {
			s.hangUp()
		}
	}()
	if s.conn == nil {
		if s.conn, err = (&net.Dialer{Timeout: answerTimeout, LocalAddr: s.from}).Dial("tcp", s.address); err != nil {
			return 0, err
		}
		s.in = bufio.NewReader(s.conn)
	}
	if err := s.conn.SetDeadline(time.Now().Add(answerTimeout)); err != nil {
		return 0, err
	}
	buffers := net.Buffers{r.head, []byte(id + "\r\n\r\n"), r.body}
	if _, err := buffers.WriteTo(s.conn); err != nil {
		return 0, err
	}
	res, err := http.ReadResponse(s.in, nil)
	if err != nil {
		return 0, err
	}
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		return 0, err
	}
	if res.Close {
		s.hangUp()
	}
	return res.StatusCode, res.Body.Close()
}

func (s *sender) hangUp() {
	if s.conn != nil {
		_ = s.conn.Close() // nothing more is wanted of it
		s.conn = nil
	}
}

// deliveryResults are what came of deliveries.
type deliveryResults struct {
	acknowledged []string
	times        []time.Duration
	failed       int
}

func (d *deliveryResults) add(o deliveryResults) {
	d.acknowledged, d.times, d.failed = append(d.acknowledged, o.acknowledged...), append(d.times, o.times...), d.failed+o.failed
}

// percentile is the time within which so much of all was answered.
func (d *deliveryResults) percentile(p float64) time.Duration {
	if len(d.times) == 0 {
		return 0
	}
	slices.Sort(d.times)
	return d.times[min(len(d.times)-1, int(p*float64(len(d.times))))].Round(10 * time.Microsecond)
}

// sendUntil delivers over so many connections until a time; each waits for a tick
// before every delivery where there is one.
func sendUntil(end time.Time, connections int, address, name string, requests []signedRequest, every time.Duration) deliveryResults {
	var mu sync.Mutex
	var all deliveryResults
	var wg sync.WaitGroup
	for c := range connections {
		wg.Go(func() {
			s := &sender{address: address}
			defer s.hangUp()
			var mine deliveryResults
			for i := 0; time.Now().Before(end); i++ {
				id := fmt.Sprintf("%s-%d-%d", name, c, i)
				begun := time.Now()
				status, err := s.send(requests[(c+i)%len(requests)], id)
				switch {
				case err == nil && status == http.StatusOK:
					mine.acknowledged, mine.times = append(mine.acknowledged, id), append(mine.times, time.Since(begun))
				default:
					mine.failed++
					<-time.After(pollInterval) // the server is being started again
				}
				if every > 0 {
					s.hangUp() // forges open a connection a delivery
					<-time.After(every)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			all.add(mine)
		})
	}
	wg.Wait()
	return all
}

// loadRun is a server with what came of the deliveries to it.
type loadRun struct {
	name   string
	server *loadedServer
	got    deliveryResults
	took   time.Duration // in which it was there
}

// send delivers for a while.
func (l *loadRun) send(round int, lasts time.Duration, connections int, requests []signedRequest) {
	begun := time.Now()
	l.got.add(sendUntil(begun.Add(lasts), connections, l.server.address, fmt.Sprint("round-", round), requests, 0))
	l.took += time.Since(begun)
}

// rate is how many deliveries were acknowledged a second.
func (l *loadRun) rate() float64 { return float64(len(l.got.acknowledged)) / l.took.Seconds() }

// describe says what was reached, and what it cost; the server has ended.
func (l *loadRun) describe() string {
	return fmt.Sprintf("%.0f deliveries/s, p50 %s, p99 %s, %s of CPU each", l.rate(), l.got.percentile(0.5), l.got.percentile(0.99),
		(l.server.cpu / time.Duration(max(1, len(l.got.acknowledged)))).Round(time.Microsecond))
}

// startPlainRuns starts every plain handler.
func startPlainRuns(t *testing.T) []*loadRun {
	t.Helper()
	var all []*loadRun
	for _, name := range slices.Sorted(maps.Keys(plainHandlers)) {
		all = append(all, &loadRun{name: name, server: newPlainServer(t, name)})
	}
	return all
}

// loadRounds is how often the servers that are compared take turns: what else the machine
// does then slows all of them alike.
const loadRounds = 10

// TestLoad delivers usual payloads as fast as the server takes them. The server is
// killed in the middle and started again: all that it acknowledged is in the store. By turns
// the same goes to plain handlers.
func TestLoad(t *testing.T) {
	for _, connections := range []int{16, 64} {
		t.Run(fmt.Sprintf("connections=%d", connections), func(t *testing.T) {
			own := &loadRun{server: newLoadedServer(t)}
			var requests []signedRequest
			for i := range 64 {
				requests = append(requests, newSignedRequest(pullPayload(i+1, 25<<10), secret))
			}
			plain := startPlainRuns(t)
			s := own.server
			s.start()
			s.awaitAnswer()
			turn := *loadFor / loadRounds
			var away time.Duration
			for round := range loadRounds {
				for _, p := range plain {
					p.send(round, turn/2, connections, requests)
				}
				killed := make(chan time.Duration, 1)
				if round == loadRounds/2 {
					go func() {
						<-time.After(turn / 2)
						s.kill()
						at := time.Now()
						s.start()
						s.awaitAnswer()
						killed <- time.Since(at)
					}()
				}
				own.send(round, turn, connections, requests)
				if round == loadRounds/2 {
					away = <-killed
					own.took -= min(away, turn/2)
				}
			}
			s.kill()
			stored := s.storedDeliveries()
			lost := 0
			for _, id := range own.got.acknowledged {
				if !stored[id] {
					lost++
				}
			}
			fmt.Printf("%d connections, %d bytes: %s; killed once (away for %s), %d not acknowledged\n", connections, len(requests[0].body), own.describe(), away.Round(time.Millisecond), own.got.failed)
			for _, p := range plain {
				p.server.kill()
				fmt.Printf("beside it, %s without storing: %s; the server reaches %.2f of that rate\n", p.name, p.describe(), own.rate()/p.rate())
			}
			fmt.Printf("acknowledged %d, of these stored %d\n", len(own.got.acknowledged), len(own.got.acknowledged)-lost)
			if lost > 0 || len(own.got.acknowledged) == 0 {
				t.Errorf("%d of %d acknowledged deliveries are lost", lost, len(own.got.acknowledged))
			}
		})
	}
}

// TestLoadAmongStrangers delivers at a forge's pace while strangers send 100 Mbit/s:
// from other addresses, and from the forge's own, as behind a proxy.
func TestLoadAmongStrangers(t *testing.T) {
	for name, from := range map[string]string{"from other addresses": "127.0.0.2", "from the forge's own address": "127.0.0.1"} {
		t.Run(name, func(t *testing.T) {
			s := newLoadedServer(t)
			s.start()
			s.awaitAnswer()
			end := time.Now().Add(*loadFor)
			strangers := startStrangers(t, s.address, &net.TCPAddr{IP: net.ParseIP(from)}, end)
			var requests []signedRequest
			for i, size := range []int{3 << 10, 25 << 10, 97_000} {
				requests = append(requests, newSignedRequest(pullPayload(i+1, size), secret))
			}
			got := sendUntil(end, 4, s.address, "forge", requests, 50*time.Millisecond)
			sent := strangers()
			all := len(got.acknowledged) + got.failed
			fmt.Printf("strangers %s: %.0f Mbit/s over %d connections; of %d deliveries up to 100 kB %.2f %% were acknowledged, p50 %s, p99 %s\n", name,
				float64(sent.bytes.Load())*8/1e6/loadFor.Seconds(), sent.connections.Load(), all, 100*float64(len(got.acknowledged))/float64(all), got.percentile(0.5), got.percentile(0.99))
			if float64(len(got.acknowledged)) < 0.99*float64(all) || got.percentile(0.99) > time.Second {
				t.Error("strangers kept deliveries out")
			}
		})
	}
}

// strangerTraffic is what strangers have sent.
type strangerTraffic struct{ bytes, connections atomic.Int64 }

// strangerRate is how many bytes a second all strangers send together: 100 Mbit/s.
const strangerRate = 100_000_000 / 8

// startStrangers lets strangers send until a time: large bodies, small ones with a wrong signature,
// and hundreds of connections that stall or dawdle. The returned function waits for their end.
func startStrangers(t *testing.T, address string, from net.Addr, end time.Time) func() *strangerTraffic {
	t.Helper()
	sent := &strangerTraffic{}
	var wg sync.WaitGroup
	pace := newPacer(strangerRate)
	large := newSignedRequest(bytes.Repeat([]byte("x"), 24_000_000), "guess")
	small := newSignedRequest(pullPayload(1, 25<<10), "guess")
	loop := func(count int, f func(c net.Conn)) {
		for range count {
			wg.Go(func() {
				for time.Now().Before(end) {
					c, err := (&net.Dialer{Timeout: time.Second, LocalAddr: from}).Dial("tcp", address)
					if err != nil {
						<-time.After(pollInterval)
						continue
					}
					sent.connections.Add(1)
					_ = c.SetDeadline(end.Add(time.Second)) // the test's end is near enough
					f(&pacedConn{Conn: c, pace: pace, sent: sent})
					_ = c.Close() // nothing more is wanted of it
				}
			})
		}
	}
	begin := func(c net.Conn, r signedRequest, body []byte) bool {
		_, err := c.Write(slices.Concat(r.head, []byte("stranger\r\n\r\n"), body))
		return err == nil
	}
	awaitEnd := func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }    // until the server cuts it
	loop(16, func(c net.Conn) { begin(c, large, large.body) })        // huge, without a pause
	loop(8, func(c net.Conn) { begin(c, small, small.body) })         // usual ones with a wrong signature
	loop(300, func(c net.Conn) { begin(c, small, nil); awaitEnd(c) }) // stalled at once
	loop(100, func(c net.Conn) { begin(c, large, large.body[:1<<20]); awaitEnd(c) })
	loop(100, func(c net.Conn) { _, _ = c.Write([]byte("POST /webhooks/hub HTTP/1.1\r\n")); awaitEnd(c) })
	loop(100, func(c net.Conn) { // a byte at a time
		for begin(c, small, nil); time.Now().Before(end); <-time.After(100 * time.Millisecond) {
			if _, err := c.Write([]byte(" ")); err != nil {
				return
			}
		}
	})
	return func() *strangerTraffic {
		wg.Wait()
		return sent
	}
}

// pacer shares a number of bytes a second among all who send.
type pacer struct{ budget chan int }

// pacedChunk is what is sent at once.
const pacedChunk = 16 << 10

func newPacer(rate int) *pacer {
	p := &pacer{budget: make(chan int, 64)}
	go func() {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for stop := time.Now().Add(10 * time.Minute); time.Now().Before(stop); <-tick.C {
			for n := rate / 100; n > 0; n -= pacedChunk {
				select {
				case p.budget <- min(n, pacedChunk):
				default:
				}
			}
		}
	}()
	return p
}

// pacedConn sends large writes at the common pace.
type pacedConn struct {
	net.Conn
	pace *pacer
	sent *strangerTraffic
}

func (pc *pacedConn) Write(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		part := p[n:min(len(p), n+1024)]
		if len(p) > 2048 {
			part = p[n:min(len(p), n+<-pc.pace.budget)]
		}
		m, err := pc.Conn.Write(part)
		n += m
		pc.sent.bytes.Add(int64(m))
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// TestStrangersStall holds that hundreds of stalled connections, small and large, from the forge's
// own address keep no delivery out. The server reads what make load sends.
func TestStrangersStall(t *testing.T) {
	s := startHarness(t, harnessOptions{face: githubFace(), noHook: true}) // whose deliveries make load sends
	address := strings.TrimPrefix(s.url, "http://")
	small, large := newSignedRequest(pullPayload(7, 25<<10), "guess"), newSignedRequest(bytes.Repeat([]byte("x"), 24_000_000), "guess")
	stall := func(r signedRequest, size int) {
		c, err := net.Dial("tcp", address)
		s.must("connect", err)
		t.Cleanup(func() { c.Close() })
		_, err = c.Write(slices.Concat(r.head, []byte("stranger\r\n\r\n"), r.body[:size]))
		s.must("send a part", err)
	}
	for range 15 {
		stall(large, 2<<20)
	}
	for range 300 {
		stall(small, 5000)
	}
	c := &sender{address: address}
	defer c.hangUp()
	for i, size := range []int{3 << 10, 25 << 10, 97_000} {
		for key, want := range map[string]int{secret: http.StatusOK, "guess": http.StatusUnauthorized} {
			if status, err := c.send(newSignedRequest(pullPayload(i+1, size), key), fmt.Sprintf("d-%s-%d", key, i)); err != nil || status != want {
				t.Errorf("%d bytes signed with %s: %d, %v", size, key, status, err)
			}
		}
	}
}
