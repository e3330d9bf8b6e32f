package argoemulator

import (
	"cmp"
	"fmt"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/util/uuid"
)

// AppSpec is an Application to run: a folder of a repository, deployed to a
// namespace of a cluster.
type AppSpec struct {
	Name, Namespace      string // of the Application; Namespace empty: argocd
	Project              string // empty: default
	Repo                 string // owner/name
	Branch               string // empty: main
	Path                 string // the folder with kustomization.yaml
	DestinationNamespace string
	Cluster              string // a name, or an address with "://"; empty: https://kubernetes.default.svc
	ApplicationSet       string // the owner's name; empty: a plain Application
	Labels               map[string]string
	Options              map[string]any // further fields of its source, such as kustomize; they are deployed, too
	Manual               bool           // no automated sync
	Unsynced             bool           // starts without anything deployed; else it runs what the branch has, and is well
	AppearsAfter         time.Duration  // appears so much later, and then Unsynced
}

// application is one Application as its controller knows it.
type application struct {
	AppSpec
	appearsAt time.Time // zero when it is there

	// The controller's knowledge of Git.
	noticedHead string    // the branch's commit, as the revision cache has it
	branchHead  string    // the branch's commit
	headMovedAt time.Time // since when latest isn't noticed

	comparing       *comparison
	comparedOptions map[string]any // the source's options that the last comparison was with
	compareNext     bool           // compare at the next look
	resyncAt        time.Time      // when to compare without a reason
	sync            string         // Synced, OutOfSync, Unknown or empty
	revision        string         // what sync is about
	health          health         // as reported, which is not as it is
	reconciled      time.Time
	conditions      []condition
	op              *operation
	failedCommit    string // the commit whose automated sync failed: it isn't tried again
	history         []any

	live      *rollout // what the cluster runs; nil: nothing
	children  []string // the Applications among its resources
	fault     AppFault
	requested pendingRequests
	dirty     bool // the reported state has changed
}

// comparison is one that is under way.
type comparison struct {
	endsAt  time.Time
	commit  string
	options map[string]any // of the source, as they were when the comparison began
	health  health         // likewise
	refresh bool           // it was asked for by the annotation
}

type condition struct {
	kind, message string
	since         time.Time
}

// operation is the running or last sync.
type operation struct {
	request          jsonObject // what .operation said
	commit           string
	phase, message   string
	started, due, at time.Time // due: when it ends; at: when it ended
	automated        bool
}

const refreshAnnotation = "argocd.argoproj.io/refresh"

// AddApplication adds an Application. The names must be new; the repository must
// exist, its branch and folder need not.
func (a *ArgoCD) AddApplication(s AppSpec) error {
	for _, d := range []struct {
		field *string
		value string
	}{{&s.Namespace, "argocd"}, {&s.Project, "default"}, {&s.Branch, "main"}, {&s.Cluster, "https://kubernetes.default.svc"}} {
		*d.field = cmp.Or(*d.field, d.value)
	}
	key := s.Namespace + "/" + s.Name
	fail := func(err error) error { return fmt.Errorf("adding Application %s: %w", key, err) }
	if s.Name == "" || s.Repo == "" || s.Path == "" || s.DestinationNamespace == "" {
		return fail(fmt.Errorf("name, repository, path and destination namespace are required"))
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.apps[key] != nil {
		return fail(fmt.Errorf("it exists already"))
	}
	head, err := a.repos.Head(s.Repo, s.Branch)
	if err != nil {
		return fail(err)
	}
	now := a.now()
	app := &application{AppSpec: s, noticedHead: head, branchHead: head, resyncAt: now, comparedOptions: s.Options}
	a.apps[key] = app
	if s.AppearsAfter > 0 {
		app.appearsAt = now.Add(s.AppearsAfter)
		return nil
	}
	if s.Unsynced {
		return a.createObject(app, now)
	}
	c, err := a.readContent(app, head)
	if err != nil {
		delete(a.apps, key)
		return fail(err)
	}
	if c.missing {
		return a.createObject(app, now)
	}
	app.live = &rollout{content: c, preexisting: true}
	app.sync, app.revision, app.reconciled = "Synced", head, now
	if a.timings.Resync > 0 {
		app.resyncAt = now.Add(a.timings.Resync)
	}
	app.health = a.actualHealth(app, now)
	app.health.since = now
	return a.createObject(app, now)
}

// createObject puts the Application's object into the store.
func (a *ArgoCD) createObject(app *application, now time.Time) error {
	app.appearsAt = time.Time{}
	x := jsonObject{
		"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
		"metadata": jsonObject{
			"name": app.Name, "namespace": app.Namespace, "uid": string(uuid.NewUUID()), "generation": 1,
			"creationTimestamp": now.UTC().Format(time.RFC3339),
		},
		"spec": app.buildSpec(a.repos.CloneURL(app.Repo)),
	}
	if len(app.Labels) > 0 {
		metadataOf(x)["labels"] = app.Labels
	}
	if app.ApplicationSet != "" { // as its controller creates them
		metadataOf(x)["finalizers"] = []any{"resources-finalizer.argocd.argoproj.io"}
		metadataOf(x)["ownerReferences"] = []any{jsonObject{
			"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "name": app.ApplicationSet,
			"uid": string(uuid.NewUUID()), "controller": true, "blockOwnerDeletion": true,
		}}
	}
	if app.sync != "" {
		x["status"] = a.buildStatus(app)
	}
	return a.store.put("applications", app.Namespace, app.Name, x)
}

// SetOptions gives an Application's source other options, as its ApplicationSet
// does when what it generates from has changed.
func (a *ArgoCD) SetOptions(namespace, name string, options map[string]any) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	app, err := a.findApplication(namespace, name)
	if err != nil {
		return err
	}
	app.Options, app.compareNext = options, true
	a.updateObject(app, func(x jsonObject) { x["spec"] = app.buildSpec(a.repos.CloneURL(app.Repo)) })
	return nil
}

// SetChildren has an Application list other Applications of its namespace among its
// resources, as one that is a parent of theirs does.
func (a *ArgoCD) SetChildren(namespace, name string, children ...string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	app, err := a.findApplication(namespace, name)
	if err != nil {
		return err
	}
	app.children = children
	a.updateObject(app, func(x jsonObject) { x["status"] = a.buildStatus(app) })
	return nil
}

// RemoveApplication deletes an Application, as its ApplicationSet would.
func (a *ArgoCD) RemoveApplication(namespace, name string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, err := a.findApplication(namespace, name); err != nil {
		return err
	}
	delete(a.apps, namespace+"/"+name)
	a.store.remove("applications", namespace, name)
	return nil
}

func (a *ArgoCD) findApplication(namespace, name string) (*application, error) {
	app := a.apps[namespace+"/"+name]
	if app == nil {
		return nil, fmt.Errorf("there is no Application %s/%s", namespace, name)
	}
	return app, nil
}

// AddObject serves another object: resource is applicationsets, appprojects or
// secrets. x needs metadata.name and metadata.namespace.
func (a *ArgoCD) AddObject(resource string, x map[string]any) error {
	if kindByResource[resource] == "" || resource == "applications" {
		return fmt.Errorf("adding an object: %q is not one of applicationsets, appprojects and secrets", resource)
	}
	name, _ := metadataOf(x)["name"].(string)
	namespace, _ := metadataOf(x)["namespace"].(string)
	if name == "" || namespace == "" {
		return fmt.Errorf("adding an object to %s: it needs metadata.name and metadata.namespace", resource)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if metadataOf(x)["uid"] == nil {
		metadataOf(x)["uid"] = string(uuid.NewUUID())
	}
	x["apiVersion"], x["kind"] = apiVersion(resource), kindByResource[resource]
	return a.store.put(resource, namespace, name, x)
}

// RemoveObject deletes an object that AddObject added; one that isn't there is
// success.
func (a *ArgoCD) RemoveObject(resource, namespace, name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.store.remove(resource, namespace, name)
}

// AppState is what an Application reports, for stories and tests.
type AppState struct {
	Exists       bool
	Sync         string
	Revision     string
	Health       string
	Phase        string // of the last operation
	Images       []string
	ReconciledAt time.Time
}

// State is what an Application reports now.
func (a *ArgoCD) State(namespace, name string) (AppState, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	app, err := a.findApplication(namespace, name)
	if err != nil || !app.appearsAt.IsZero() {
		return AppState{}, err
	}
	s := AppState{Exists: true, Sync: app.sync, Revision: app.revision, Health: app.health.status, ReconciledAt: app.reconciled}
	if app.op != nil {
		s.Phase = app.op.phase
	}
	if app.live != nil {
		s.Images = app.live.content.images
	}
	return s, nil
}

// updateObject brings the reported state into the Application's object.
func (a *ArgoCD) updateObject(app *application, change func(x jsonObject)) {
	x := a.store.get("applications", app.Namespace, app.Name)
	if x == nil {
		return
	}
	if change != nil {
		change(x)
	}
	x["status"] = a.buildStatus(app)
	app.dirty = false
	if err := a.store.put("applications", app.Namespace, app.Name, x); err != nil {
		a.log.Error("an Application can't be written", zap.String("application", app.Namespace+"/"+app.Name), zap.Error(err))
	}
}
