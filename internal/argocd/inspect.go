package argocd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/liftlock/liftlock/internal/argocd/api"
	"github.com/liftlock/liftlock/internal/promotion/verification"
)

// maxInspected bounds the Applications that an inspection reads of each namespace: how they are
// set up shows in fewer.
const maxInspected = 500

// Inspection is what an Argo CD lets Liftlock do, and how it is set up for it.
type Inspection struct {
	Source       string         // where it is
	Line         string         // of Argo CD, as "3.5"; empty: older than all that are known, or LineErr
	LineErr      error          // why that isn't known
	Missing      []MissingRight // rights that would be used
	Applications int            // that were read, at most some hundred
	// HealthHidden are those that don't say which of their resources are unhealthy, where
	// there is no API to read that by.
	HealthHidden int
	// Closed are the Applications, as namespace/name, whose project's sync windows let no sync
	// begin within a year.
	Closed    []string
	TokenEnds time.Time // of the API's token; zero: it doesn't, or there is none
}

// MissingRight is one that Liftlock lacks.
type MissingRight struct {
	Rule     string // that would give it: of a Role, or of argocd-rbac-cm
	Without  string // what doesn't work
	Required bool   // nothing works without it
}

// IsRefused says that an Argo CD, or the API server of its cluster, doesn't take the credentials.
func IsRefused(err error) bool {
	var s *api.StatusError
	return apierrors.IsUnauthorized(err) || errors.As(err, &s) && s.Code == http.StatusUnauthorized
}

// Inspect reads how the Argo CD of some options is set up, and changes nothing. The error is that
// it can't be reached, or that its credentials are refused (IsRefused). Sync windows are judged as
// of now.
func Inspect(ctx context.Context, o Options, now time.Time) (*Inspection, error) {
	w, err := New(o)
	if err != nil {
		return nil, err
	}
	i := &Inspection{Source: w.host}
	if i.Missing, err = w.missingRights(ctx, &o); err != nil {
		return nil, err
	}
	i.Line, i.LineErr = w.detectLine(ctx)
	if o.API != nil {
		if i.TokenEnds, err = o.API.TokenExpiry(ctx); err != nil {
			return nil, err
		}
	}
	if slices.ContainsFunc(i.Missing, func(m MissingRight) bool { return m.Required }) {
		return i, nil // there is nothing to see
	}
	return i, w.inspectApplications(ctx, i, now)
}

// missingRights are those that what the options ask for needs and that aren't there.
func (w *Watcher) missingRights(ctx context.Context, o *Options) ([]MissingRight, error) {
	if o.APIAlone {
		return w.missingAPIRights(ctx, o)
	}
	namespaces := slices.Compact(slices.Sorted(slices.Values(o.Namespaces)))
	if len(namespaces) == 0 {
		namespaces = []string{""}
	}
	own := ""
	if len(o.Namespaces) > 0 {
		own = o.Namespaces[0]
	}
	const verdicts = "Applications can't be watched, so that nothing is verified or merged"
	wanted := []right{{own, "argoproj.io", "appprojects", []string{"list", "watch"}, missingProjects, false}}
	for _, ns := range namespaces {
		wanted = append(wanted,
			right{ns, "argoproj.io", "applications", []string{"get", "list", "watch"}, verdicts, true},
			right{ns, "argoproj.io", "applicationsets", []string{"list", "watch"}, missingSets, false})
		if o.Refresh == RefreshAnnotation || o.Refresh == "" {
			wanted = append(wanted, right{ns, "argoproj.io", "applications", []string{"patch"},
				"Argo CD can't be asked to look at a merge at once (or set refresh: off), nor to sync", false})
		}
	}
	if o.Clusters {
		wanted = append(wanted, right{own, "", "secrets", []string{"list"}, "clusters: {live: true} can't read Argo CD's clusters", false})
	}
	var missing []MissingRight
	for _, r := range wanted {
		lacking, err := w.lackingVerbs(ctx, r)
		if err != nil {
			return nil, err
		}
		if len(lacking) > 0 {
			missing = append(missing, r.missing(lacking))
		}
	}
	return missing, nil
}

// right is one by Kubernetes' own authorisation.
type right struct {
	namespace, group, resource string // an empty namespace: all; an empty group: the core one
	verbs                      []string
	without                    string
	required                   bool
}

func (r *right) missing(verbs []string) MissingRight {
	where, group := "a ClusterRole", r.group
	if r.namespace != "" {
		where = "a Role in the namespace " + r.namespace
	}
	if group == "" {
		group = `""`
	}
	return MissingRight{Rule: fmt.Sprintf("%s: apiGroups [%s], resources [%s], verbs %v", where, group, r.resource, verbs),
		Without: r.without, Required: r.required}
}

// lackingVerbs are those of a right that Kubernetes wouldn't allow.
func (w *Watcher) lackingVerbs(ctx context.Context, r right) ([]string, error) {
	var lacking []string
	for _, verb := range r.verbs {
		allowed, err := w.mayDo(ctx, r.namespace, verb, r.group, r.resource)
		switch {
		case err != nil:
			return nil, fmt.Errorf("ask Kubernetes what Liftlock may do: %w", err)
		case !allowed:
			lacking = append(lacking, verb)
		}
	}
	return lacking, nil
}

// missingAPIRights are those by Argo CD's own authorisation, where everything goes by its API.
func (w *Watcher) missingAPIRights(ctx context.Context, o *Options) ([]MissingRight, error) {
	wanted := []struct {
		kind, without string
		required      bool
	}{
		{api.Applications, "Applications can't be watched, so that nothing is verified or merged", true},
		{api.ApplicationSets, missingSets, false},
		{api.Projects, missingProjects, false},
	}
	if o.Clusters {
		wanted = append(wanted, struct {
			kind, without string
			required      bool
		}{api.Clusters, "clusters: {live: true} can't read Argo CD's clusters", false})
	}
	projects := o.Projects
	if len(projects) == 0 {
		projects = []string{""}
	}
	var missing []MissingRight
	for _, r := range wanted {
		of := projects
		if r.kind == api.Projects || r.kind == api.Clusters {
			of = []string{""}
		}
		for _, project := range of {
			may, err := o.API.MaySee(ctx, r.kind, project)
			switch {
			case err != nil:
				return nil, fmt.Errorf("ask Argo CD what Liftlock may do: %w", err)
			case !may:
				missing = append(missing, MissingRight{Rule: fmt.Sprintf("argocd-rbac-cm: p, <role>, %s, get, %s, allow", r.kind,
					api.AllOf(r.kind, project)), Without: r.without, Required: r.required})
			}
		}
	}
	return missing, nil
}

// errEnough ends a list of which enough was read.
var errEnough = errors.New("enough was read")

// inspectApplications reads how Applications are set up, and their projects' sync windows.
func (w *Watcher) inspectApplications(ctx context.Context, i *Inspection, now time.Time) error {
	projectsKnown := true
	for _, f := range w.projectFeeds {
		err := f.visitAll(ctx, "", "", func(raw json.RawMessage) error {
			if _, put := w.projects.decodeObject(raw); put != nil {
				put()
			}
			return nil
		})
		projectsKnown = projectsKnown && err == nil // what is missing for it has been said
	}
	for _, f := range w.appFeeds {
		read := 0
		err := f.visitAll(ctx, "", "", func(raw json.RawMessage) error {
			if read++; read > maxInspected {
				return errEnough
			}
			app := w.inspectApplication(raw, i)
			if app != nil && projectsKnown && w.neverSyncs(app, now) {
				i.Closed = append(i.Closed, app.Namespace+"/"+app.Name)
			}
			return nil
		})
		if err != nil && !errors.Is(err, errEnough) {
			return fmt.Errorf("list Applications: %w", err)
		}
	}
	return nil
}

// inspectApplication reads one; nil where it can't be read, which is said where it matters.
func (w *Watcher) inspectApplication(raw json.RawMessage, i *Inspection) *verification.App {
	app, _, err := decodeApplication(w.name, raw)
	if err != nil {
		return nil
	}
	i.Applications++
	var health struct {
		Status struct {
			Source string `json:"resourceHealthSource"`
		} `json:"status"`
	}
	if w.api == nil && json.Unmarshal(raw, &health) == nil && health.Status.Source == healthInTree {
		i.HealthHidden++
	}
	return &app
}

// neverSyncs says that the sync windows of its project let no sync of an Application begin within
// a year.
func (w *Watcher) neverSyncs(app *verification.App, now time.Time) bool {
	windows, err := w.projects.listWindows(app)
	if err != nil || len(windows) == 0 {
		return false
	}
	sync := syncAttempt{manual: !app.SyncsByItself()}
	return !allowsSync(windows, sync, now) && findChange(windows, sync, now).IsZero()
}
