package argoemulator

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/cache"
)

// Repositories is where an ArgoCD reads what it deploys. A Forge is one. Its
// methods are called often and must not call the ArgoCD back.
type Repositories interface {
	// CloneURL is what an Application's repoURL says for "owner/name".
	CloneURL(repo string) string
	// Head is a branch's commit; empty when there is no such branch.
	Head(repo, branch string) (string, error)
	// Tree lists a commit's files and folders: path → object id, "." for the whole.
	Tree(repo, commit string) (map[string]string, error)
	// Blob reads a file by its object id.
	Blob(repo, id string) (string, error)
}

// Options say how an ArgoCD is made.
type Options struct {
	Repos   Repositories // required
	Timings Timings
	Now     func() time.Time // the clock of everything but Timings.Tick and Timings.Bookmark; nil: time.Now
	Log     *zap.Logger      // nil: silent
}

// readHeaderTimeout ends connections that never send a request.
const readHeaderTimeout = 10 * time.Second

// ArgoCD is a simulated Argo CD 2.14 behind the API of a Kubernetes server, with resource
// trees by its own API beside it, on a port of 127.0.0.1. All methods may be called concurrently.
type ArgoCD struct {
	repos   Repositories
	timings Timings
	now     func() time.Time
	log     *zap.Logger
	url     string
	ca      []byte // its certificate's authority, in PEM
	token   string // what clients must show
	// apiToken is what clients of Argo CD's own API must show.
	apiToken string
	server   *http.Server
	stop     context.CancelFunc
	done     sync.WaitGroup

	// mu guards everything below. It may be held while Repositories are asked.
	mu             sync.Mutex
	store          *objectStore
	apps           map[string]*application       // by namespace/name
	contents       *cache.Cache[string, content] // by repository, commit and folder
	trees          *cache.Cache[string, map[string]string]
	blobs          *cache.Cache[string, string]
	requestFaults  []*requestFault
	watchesStalled bool          // watches send nothing
	watchesCut     chan struct{} // closed to end all watches
	requests       map[string]int
	denied         map[string]bool // rights that clients don't have: "patch applications"
}

// New starts an Argo CD without Applications, with the project default as
// every Argo CD has it. The caller closes it.
func New(o Options) (*ArgoCD, error) {
	if o.Repos == nil {
		return nil, errors.New("starting the simulated Argo CD: no repositories were given")
	}
	cert, authority, err := selfSigned()
	if err != nil {
		return nil, fmt.Errorf("starting the simulated Argo CD: %w", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("starting the simulated Argo CD: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	a := &ArgoCD{
		repos: o.Repos, timings: o.Timings, now: o.Now, log: o.Log, url: "https://" + listener.Addr().String(),
		ca: authority, token: rand.Text(), apiToken: rand.Text(), stop: cancel, store: newObjectStore(o.Timings.maxEvents()),
		apps:     map[string]*application{},
		contents: cache.New(nil, cache.Options[string, content]{Name: "emulator-contents", Entries: maxContents}),
		trees:    cache.New(nil, cache.Options[string, map[string]string]{Name: "emulator-trees", Entries: maxTrees}),
		blobs:    cache.New(nil, cache.Options[string, string]{Name: "emulator-blobs", Entries: maxBlobs}), watchesCut: make(chan struct{}),
		requests: map[string]int{}, denied: map[string]bool{},
	}
	if a.now == nil {
		a.now = time.Now
	}
	if a.log == nil {
		a.log = zap.NewNop()
	}
	if err := a.AddObject("appprojects", jsonObject{"metadata": jsonObject{"name": "default", "namespace": "argocd"}}); err != nil {
		cancel()
		return nil, errors.Join(fmt.Errorf("starting the simulated Argo CD: %w", err), listener.Close())
	}
	a.server = &http.Server{Handler: http.HandlerFunc(a.serveHTTP), ReadHeaderTimeout: readHeaderTimeout, ErrorLog: zap.NewStdLog(a.log),
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}}
	a.done.Go(func() {
		if err := a.server.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
			a.log.Error("the simulated Argo CD's server stopped", zap.Error(err))
		}
	})
	a.done.Go(func() { a.runController(ctx) })
	return a, nil
}

// runController lets the controller look at every tick.
func (a *ArgoCD) runController(ctx context.Context) {
	tick := time.NewTicker(a.timings.tickInterval())
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			a.reconcileAll()
		}
	}
}

// URL is the API server's address.
func (a *ArgoCD) URL() string { return a.url }

// WriteKubeconfig writes a kubeconfig with which kubectl and client-go reach the
// API server. It holds the server's certificate and the token that it asks for.
func (a *ArgoCD) WriteKubeconfig(path string) error {
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters:
  - name: emulated
    cluster: {server: %q, certificate-authority-data: %s}
users:
  - name: emulated
    user: {token: %q}
contexts:
  - name: emulated
    context: {cluster: emulated, user: emulated, namespace: argocd}
current-context: emulated
`, a.url, base64.StdEncoding.EncodeToString(a.ca), a.token)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return fmt.Errorf("writing the kubeconfig: %w", err)
	}
	return nil
}

// Close stops the controller and the server, and breaks open watches.
func (a *ArgoCD) Close() error {
	a.stop()
	err := a.server.Close()
	a.done.Wait()
	if err != nil {
		return fmt.Errorf("stopping the simulated Argo CD: %w", err)
	}
	return nil
}
