package server

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/console"
	"github.com/liftlock/liftlock/internal/controller"
	"github.com/liftlock/liftlock/internal/controller/gateclient"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/webhooks"
)

// access says who is answered.
type access string

const (
	forForges    access = "forges"    // senders that sign with one of the webhook's secrets
	forAnybody   access = "anybody"   // nothing is said that isn't for everybody
	forReaders   access = "readers"   // who may read the console
	forEndpoints access = "endpoints" // senders that sign with the secret of the endpoint that the address names
	forConsole   access = "console"   // as the console's own routes say
)

// route is an address, who is answered there, and by what.
type route struct {
	pattern string
	access  access
	anyHost bool // also asked by other names than the server's own
	handler http.Handler
}

// buildHandlers makes what each listener answers.
func (s *Server) buildHandlers() (map[*listener]http.Handler, error) {
	hooks, err := s.webhookRoutes()
	if err != nil {
		return nil, err
	}
	health := route{"GET /healthz", forAnybody, true, http.HandlerFunc(
		func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })}
	if s.hooks != nil {
		return map[*listener]http.Handler{s.main: s.buildHandler(append(s.mainRoutes(), health)),
			s.hooks: s.buildHandler(append(hooks, health))}, nil
	}
	return map[*listener]http.Handler{s.main: s.buildHandler(append(append(s.mainRoutes(), hooks...), health))}, nil
}

// buildHandler puts routes behind what their access says, and security headers on
// every answer.
func (s *Server) buildHandler(routes []route) http.Handler {
	mux := http.NewServeMux()
	hosts := newHostCheck(s.o.Config.HostNames())
	for _, r := range routes {
		h := r.handler
		if r.access == forReaders {
			h = s.console.ReadersOnly(h)
		}
		if !r.anyHost {
			h = hosts.require(h)
		}
		// The body of a delivery or a callback is still to come; it may have to give way.
		mux.Handle(r.pattern, trackRequests(r.access != forForges && r.access != forEndpoints, h))
	}
	return console.WithSecurityHeaders(mux)
}

// mainRoutes are those for people and programs.
func (s *Server) mainRoutes() []route {
	return []route{
		{"GET /metrics", forReaders, false, promhttp.HandlerFor(s.metrics.registry,
			promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError})},
		{"GET /readyz", forAnybody, false, http.HandlerFunc(s.serveReadyz)},
		{"POST " + gateclient.CallbackPath("{id}", "{gate}"), forEndpoints, false, http.HandlerFunc(s.serveGateCallback)},
		{"/", forConsole, false, s.console},
	}
}

// newBodyBudget is for bodies whose senders aren't known yet. It goes by the system's clock,
// as connections' deadlines do.
func (s *Server) newBodyBudget() (*webhooks.Budget, error) {
	return webhooks.NewBudget(webhooks.BudgetOptions{Client: s.clients.clientOf})
}

// webhookRoutes are those for forges.
func (s *Server) webhookRoutes() ([]route, error) {
	budget, err := s.newBodyBudget()
	if err != nil {
		return nil, err
	}
	var routes []route
	for _, f := range s.o.Config.Forges {
		secrets := make([][]byte, 0, len(f.WebhookSecrets))
		for _, k := range f.WebhookSecrets {
			secrets = append(secrets, []byte(k.Reveal()))
		}
		recv, err := webhooks.New(f.Type, secrets, budget)
		if err != nil {
			return nil, fmt.Errorf("webhooks of %s: %w", f.Name, err)
		}
		name := f.Name
		countDelivery := func(outcome string) { s.metrics.deliveries.WithLabelValues(name, outcome).Inc() }
		routes = append(routes, route{"/webhooks/" + name, forForges, true,
			webhooks.Handler(recv, func(ctx context.Context, ev *webhooks.Event) error { return s.acceptDelivery(ctx, name, ev) },
				countDelivery)})
	}
	for i := range s.o.Config.Registries {
		g := &s.o.Config.Registries[i]
		if g.WebhookSecret == "" {
			continue
		}
		recv, err := webhooks.New(webhooks.Registry, [][]byte{[]byte(g.WebhookSecret.Reveal())}, budget)
		if err != nil {
			return nil, fmt.Errorf("webhooks of %s: %w", g.Host, err)
		}
		host := g.Host
		countDelivery := func(outcome string) { s.metrics.deliveries.WithLabelValues(host, outcome).Inc() }
		routes = append(routes, route{"/webhooks/registries/" + host, forForges, true,
			webhooks.Handler(recv, func(ctx context.Context, ev *webhooks.Event) error { return s.acceptPush(ctx, host, ev.Images) },
				countDelivery)})
	}
	return routes, nil
}

// acceptPush has new versions of a registry's images looked for. Without a running engine there is nothing to do, as it
// looks for them when it starts.
func (s *Server) acceptPush(ctx context.Context, host string, paths []string) error {
	c := s.runningEngine()
	if c == nil || len(paths) == 0 {
		return nil
	}
	var images []string
	for _, path := range paths {
		images = append(images, spellImage(host, path)...)
	}
	err := c.ImagePushed(ctx, images)
	if err != nil {
		s.log.Error("a registry's delivery could not be stored and was refused; the next poll finds what was pushed",
			zap.String("registry", host), zap.Error(err))
	}
	return err
}

// spellImage gives all names that files may have for an image in a registry; empty host: path has it.
func spellImage(host, path string) []string {
	switch strings.ToLower(host) {
	case "":
		return []string{path}
	case "docker.io", "index.docker.io", "registry-1.docker.io":
		out := []string{"docker.io/" + path, "index.docker.io/" + path, path}
		if own, is := strings.CutPrefix(path, "library/"); is {
			out = append(out, "docker.io/"+own, own)
		}
		return out
	}
	return []string{host + "/" + path}
}

// acceptDelivery turns a verified delivery into keys and writes both down.
func (s *Server) acceptDelivery(ctx context.Context, name string, ev *webhooks.Event) error {
	d := store.Delivery{Forge: name, ID: ev.Delivery, Event: ev.Name, Repo: ev.Repo, ReceivedAt: s.o.Clock.Now(),
		Urgency: controller.UrgencyOfEvent(ev)}
	err := s.addKeys(ctx, &d, ev)
	if err == nil {
		_, err = s.store.Accept(ctx, d)
	}
	if err != nil {
		s.log.Error("a delivery could not be stored and was refused; the forge may deliver it again, the sweep finds what it was about",
			zap.String("forge", name), zap.String("delivery", ev.Delivery), zap.String("event", ev.Name), zap.Error(err))
		s.noteRefusal(name, ev)
	}
	return err
}

// noteRefusal has the controller see to a delivery that was refused.
func (s *Server) noteRefusal(name string, ev *webhooks.Event) {
	c := s.runningEngine()
	if c == nil {
		return // it looks at everything when it starts
	}
	if r := s.repositoryOf(name, ev); r != nil {
		c.DeliveryRefused(r.Forge + ":" + r.Name)
	}
}

// addKeys adds to a delivery what an event about a repository of ours wakes, and when.
func (s *Server) addKeys(ctx context.Context, d *store.Delivery, ev *webhooks.Event) (err error) {
	if ev.Kind == webhooks.Installation {
		s.acceptInstallation(d, ev)
		return nil
	}
	if ev.Kind == webhooks.ImagePush {
		return s.acceptPush(ctx, "", ev.Images)
	}
	r := s.repositoryOf(d.Forge, ev)
	if r == nil {
		if of := s.replacedBy(d.Forge, ev); of != nil {
			d.Keys = wake.Strings(wake.ForSweep(of.Forge + ":" + of.Name)) // which reads whose name it is
		}
		return s.addSourceKeys(d, ev) // authentic, but not about a repository of ours
	}
	id := r.Forge + ":" + r.Name
	if ev.Kind == webhooks.Repository {
		s.tryAgain(id)
	}
	if d.Keys = wake.Strings(controller.KeysOfEvent(ctx, s.store, id, s.botLogin(id), ev)...); len(d.Keys) > 0 {
		d.DueAt, err = controller.TimeOfEvent(ctx, s.store, id, ev, d.ReceivedAt)
	}
	records, unwritten := controller.RecordsOfEvent(id, s.botLogin(id), ev)
	d.Records = records
	if reached := s.reachedRepository(id); reached != nil && ev.Kind == webhooks.Push && ev.Branch != "" && !ev.Deleted {
		reached.Mirror.Expect(ev.Branch, ev.After)
	}
	return cmp.Or(err, unwritten)
}

// botLogin is our account where a repository is; empty until it was reached.
func (s *Server) botLogin(id string) string {
	if r := s.reachedRepository(id); r != nil {
		return r.BotLogin
	}
	return ""
}

// reachedRepository is a repository that was reached; nil until it was.
func (s *Server) reachedRepository(id string) *controller.Repository {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.repos {
		if r.ID == id {
			return r
		}
	}
	return nil
}

// serveReadyz says whether the server can answer and, to those who may read the console, a line a
// part. It answers 503 while the store can't be read. It reports a forge, a repository or an Argo
// CD that can't be reached, but that takes the server out of service for nobody. Webhooks must
// still be accepted, and the console is where people see what is wrong.
func (s *Server) serveReadyz(w http.ResponseWriter, r *http.Request) {
	lines := s.health.statusLines()
	_, err := s.store.Depth(r.Context())
	ok := err == nil
	if ok {
		lines = append(lines, "store: ok")
	} else {
		lines = append(lines, "store: "+err.Error())
	}
	for _, p := range slices.Concat(s.argocdStatuses(), s.clusterFileStatuses(), s.tokens.statuses(), s.appStatuses(), s.archivedStatuses(),
		s.replacedStatuses(), s.argocdTokens.statuses()) {
		if p.err != nil {
			lines = append(lines, p.name+": "+p.err.Error())
		} else {
			lines = append(lines, p.name+": ok")
		}
	}
	if !s.console.MayRead(r) {
		lines = []string{"ready"}
		if !ok {
			lines = []string{"not ready; with one of the server's API tokens this says why"}
		}
	}
	if !ok {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	fmt.Fprintln(w, strings.Join(lines, "\n"))
}

// archivedStatuses are the repositories that rest because they are archived.
func (s *Server) archivedStatuses() []partStatus {
	c := s.runningEngine()
	if c == nil {
		return nil
	}
	var out []partStatus
	for id, since := range c.ArchivedRepositories() {
		out = append(out, partStatus{"repository " + id, fmt.Errorf("it is archived, and rests: unarchive it, or remove it from the "+
			"server's file (since %s)", since.UTC().Format(time.RFC3339))})
	}
	slices.SortFunc(out, func(a, b partStatus) int { return strings.Compare(a.name, b.name) })
	return out
}

// replacedStatuses are the repositories that rest because others have their names.
func (s *Server) replacedStatuses() []partStatus {
	c := s.runningEngine()
	if c == nil {
		return nil
	}
	var out []partStatus
	for id, since := range c.ReplacedRepositories() {
		out = append(out, partStatus{"repository " + id, fmt.Errorf("%w, and nothing is done there: %s (since %s)", errReplaced,
			connectHint(errReplaced), since.UTC().Format(time.RFC3339))})
	}
	slices.SortFunc(out, func(a, b partStatus) int { return strings.Compare(a.name, b.name) })
	return out
}

// health collects what keeps the server from working.
type health struct {
	now      func() time.Time
	mu       sync.Mutex
	isReady  bool
	troubles map[string]trouble
}

func newHealth(now func() time.Time) *health {
	return &health{now: now, troubles: map[string]trouble{}}
}

func (h *health) setTrouble(part string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := trouble{why: err.Error(), since: h.now()}
	if was, ok := h.troubles[part]; ok {
		t.since = was.since
	}
	h.troubles[part] = t
}

func (h *health) clearTrouble(part string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.troubles, part)
}

func (h *health) setReady() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.isReady = true
}

// statusLines are a line about the engine, and one for each trouble, sorted.
func (h *health) statusLines() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := []string{"engine: ok"}
	if !h.isReady {
		out[0] = "engine: not started: the repositories have not been reached yet"
	}
	for part, why := range h.troubles {
		out = append(out, fmt.Sprintf("%s: %s (since %s)", part, why.why, why.since.UTC().Format(time.RFC3339)))
	}
	sort.Strings(out[1:])
	return out
}
