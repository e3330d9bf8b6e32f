package appset

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/labels"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/argoproj/argo-cd/v2/common"
	argov1alpha1 "github.com/argoproj/argo-cd/v2/pkg/apis/application/v1alpha1"
)

// Scope is all that some ApplicationSets read outside their own repository. It has questions to
// other repositories and about clusters, with the words of the answers that their templates use. It
// also has the destinations, projects and live objects that they name. Authors who may not be
// trusted with more are resolved within it, see [Input.Scope]. It may be used concurrently.
type Scope struct {
	Items []ScopeItem `json:"items"` // each key once, sorted
	Words [][]string  `json:"words"` // what items name by number

	once  sync.Once
	words map[ScopeKey]map[string]bool
}

// ScopeKey is one thing that is read.
type ScopeKey struct {
	Kind   string `json:"kind"`
	ArgoCD string `json:"argocd,omitempty"`
	// Name is a repository as normalURL has it, a selector of clusters, a live
	// ApplicationSet, a destination or a project.
	Name     string `json:"name,omitempty"`
	Place    string `json:"place,omitempty"`    // the branch of a repository, the namespace of a live ApplicationSet
	Question string `json:"question,omitempty"` // which files or folders of a repository
	Selected string `json:"selected,omitempty"` // which of the parameters count, by the generator's selector
}

// ScopeItem is a key, and which of Words templates use of what it gives.
type ScopeItem struct {
	ScopeKey
	Words int `json:"words"`
}

// The kinds of keys.
const (
	scopeRepository  = "repository"
	scopeClusters    = "clusters"
	scopeLiveSet     = "live"
	scopeDestination = "destination"
	scopeProject     = "project"
)

// setScope is one set's part of a scope.
type setScope struct {
	words []string
	keys  []ScopeKey
}

// NewScope is what some target sets were resolved from besides their repository. main is
// the Argo CD that an entry without one means.
func NewScope(main string, sets ...*TargetSet) *Scope {
	words := map[ScopeKey]map[string]bool{}
	add := func(key ScopeKey, used ...string) {
		if words[key] == nil {
			words[key] = map[string]bool{}
		}
		for _, w := range used {
			words[key][w] = true
		}
	}
	for _, f := range sets {
		for _, s := range f.scopes {
			for _, key := range s.keys {
				add(key, s.words...)
			}
		}
		for _, s := range f.sets {
			add(ScopeKey{Kind: scopeLiveSet, ArgoCD: cmp.Or(s.argocd, main), Place: s.namespace, Name: s.name})
		}
		for i := range f.Targets {
			for _, key := range targetKeys(cmp.Or(f.Targets[i].ArgoCD, main), &f.Targets[i]) {
				add(key)
			}
		}
	}
	out := &Scope{Items: []ScopeItem{}, Words: [][]string{}}
	numbers := map[string]int{}
	for _, key := range slices.SortedFunc(maps.Keys(words), compareScopeKeys) {
		list := slices.Sorted(maps.Keys(words[key]))
		id := strings.Join(list, "\x00")
		n, known := numbers[id]
		if !known {
			n = len(out.Words)
			numbers[id], out.Words = n, append(out.Words, list)
		}
		out.Items = append(out.Items, ScopeItem{key, n})
	}
	return out
}

func compareScopeKeys(a, b ScopeKey) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.ArgoCD, b.ArgoCD),
		cmp.Compare(a.Name, b.Name), cmp.Compare(a.Place, b.Place),
		cmp.Compare(a.Question, b.Question), cmp.Compare(a.Selected, b.Selected))
}

// targetKeys are what a target names that only its Argo CD knows.
func targetKeys(argocd string, t *Target) []ScopeKey {
	out := []ScopeKey{{Kind: scopeProject, ArgoCD: argocd, Name: t.Project}}
	for _, dest := range []string{t.Cluster, strings.TrimRight(t.Server, "/")} {
		if dest != "" {
			out = append(out, ScopeKey{Kind: scopeDestination, ArgoCD: argocd, Name: dest})
		}
	}
	return out
}

// find gives the words that are used of what a key gives; false where it isn't read. All is
// read where there is no scope.
func (s *Scope) find(key ScopeKey) (words map[string]bool, found bool) {
	if s == nil {
		return nil, true
	}
	s.once.Do(func() {
		s.words = make(map[ScopeKey]map[string]bool, len(s.Items))
		for _, item := range s.Items {
			words := map[string]bool{}
			if item.Words >= 0 && item.Words < len(s.Words) {
				for _, w := range s.Words[item.Words] {
					words[w] = true
				}
			}
			s.words[item.ScopeKey] = words
		}
	})
	words, found = s.words[key]
	return words, found
}

// has says that a key is read.
func (s *Scope) has(key ScopeKey) bool {
	_, found := s.find(key)
	return found
}

// digest identifies a scope; empty for none.
func (s *Scope) digest() (string, error) {
	if s == nil {
		return "", nil
	}
	return digestValues(s.Items, s.Words)
}

// ReadsRepository says that something of another repository is read at a revision.
func (s *Scope) ReadsRepository(repoURL, revision string) bool {
	if s == nil {
		return true
	}
	url, branch := normalURL(repoURL), BranchName(revision)
	return url != "" && slices.ContainsFunc(s.Items, func(i ScopeItem) bool {
		return i.Kind == scopeRepository && i.Name == url && i.Place == branch
	})
}

// LimitArgoCD is what is known of an Argo CD as far as it is read: the clusters that are
// selected or are destinations, and the projects that are named.
func (s *Scope) LimitArgoCD(name string, a ArgoCD) ArgoCD {
	if s == nil {
		return a
	}
	var selectors []labels.Selector
	for _, i := range s.Items {
		if i.Kind != scopeClusters || i.ArgoCD != name {
			continue
		}
		if selector, err := labels.Parse(i.Name); err == nil {
			selectors = append(selectors, selector)
		}
	}
	named := func(kind, text string) bool { return s.has(ScopeKey{Kind: kind, ArgoCD: name, Name: text}) }
	if a.Clusters != nil {
		a.Clusters = slices.DeleteFunc(slices.Clone(a.Clusters), func(c Cluster) bool {
			if named(scopeDestination, c.Name) || named(scopeDestination, strings.TrimRight(c.Server, "/")) {
				return false
			}
			// Without its Secret the library would make the local cluster up.
			if c.Server == argov1alpha1.KubernetesInternalAPIServerAddr {
				return false
			}
			own := labels.Set(maps.Clone(c.Labels))
			if own == nil {
				own = labels.Set{}
			}
			own[common.LabelKeySecretType] = common.LabelValueSecretTypeCluster
			return !slices.ContainsFunc(selectors, func(selector labels.Selector) bool { return selector.Matches(own) })
		})
	}
	if a.Projects != nil {
		a.Projects = slices.DeleteFunc(slices.Clone(a.Projects), func(p string) bool { return !named(scopeProject, p) })
	}
	return a
}

// LimitLive is what is known of the live objects as far as it is read. Objects that a
// pipeline names are always among them: the pipeline is the caller's.
func (s *Scope) LimitLive(live *Live, named func(LiveSet) bool) *Live {
	if s == nil || live == nil {
		return live
	}
	out := *live
	out.Sets = slices.DeleteFunc(slices.Clone(live.Sets), func(l LiveSet) bool {
		return !named(l) && !s.hasLiveSet(l.ArgoCD, l.Namespace, l.Name)
	})
	return &out
}

// hasLiveSet says that a set is read, whose manifest may have no namespace.
func (s *Scope) hasLiveSet(argocd, namespace, name string) bool {
	key := ScopeKey{Kind: scopeLiveSet, ArgoCD: argocd, Place: namespace, Name: name}
	if s.has(key) {
		return true
	}
	key.Place = ""
	return s.has(key)
}

// notEvaluated begins what is said of a set that reads more than its scope has.
const notEvaluated = "not evaluated: "

// scopeError says that a set reads more than its scope has. It has nothing but the set's own
// words: not whether what it asks for is there.
type scopeError struct{ reads string }

func (s *scopeError) Error() string {
	return notEvaluated + "it reads " + s.reads + ", and no ApplicationSet of the branch does; " +
		"a change is evaluated with no more than those read"
}

// scopeRun holds one set's run within its scope, and records what it reads. It is used by one
// goroutine.
type scopeRun struct {
	only   *Scope // nil: everything
	argocd string
	words  func() []string // that the set's templates use
	commit *commit

	here    map[string]bool // URLs that were compared
	keys    map[ScopeKey]bool
	refused error // the first thing that is not in the scope
}

func newScopeRun(s *appSet, c *commit, snap *snapshot) *scopeRun {
	words := s.words
	if words == nil { // it is run by itself, outside of a pipeline
		words = func() []string { return s.templateWords(&pipelineEntry{}) }
	}
	return &scopeRun{
		only: snap.scope, argocd: snap.name, words: words, commit: c,
		here: map[string]bool{}, keys: map[ScopeKey]bool{},
	}
}

// readWords are the words that a generator may use of an answer, and nil for all of them.
type readWords map[string]bool

// requestRepository is called before a git generator asks.
func (s *scopeRun) requestRepository(git *argov1alpha1.GitGenerator, selector *metav1.LabelSelector) (readWords, error) {
	here, known := s.here[git.RepoURL]
	if !known {
		here = s.commit.isThisRepository(git.RepoURL)
		s.here[git.RepoURL] = here
	}
	if here { // who reads a repository may read its other branches
		return nil, nil
	}
	question, err := json.Marshal([]any{git.Files, git.Directories})
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", withoutCredentials(git.RepoURL), err)
	}
	key := ScopeKey{
		Kind: scopeRepository, Name: normalURL(git.RepoURL), Place: BranchName(git.Revision),
		Question: string(question), Selected: selectorText(selector),
	}
	at := ""
	if key.Place != "" {
		at = fmt.Sprintf(" at %q", git.Revision)
	}
	return s.request(key, repositoryName(git.RepoURL)+at, func(string) bool { return true })
}

// requestClusters is called before a clusters generator asks.
func (s *scopeRun) requestClusters(g *argov1alpha1.ClusterGenerator, selector *metav1.LabelSelector) (readWords, error) {
	selected, err := metav1.LabelSelectorAsSelector(&g.Selector)
	if err != nil {
		return nil, fmt.Errorf("selecting clusters: %w", err)
	}
	what := "Argo CD's clusters"
	if text := selected.String(); text != "" {
		what += " with " + text
	}
	key := ScopeKey{Kind: scopeClusters, ArgoCD: s.argocd, Name: selected.String(), Selected: selectorText(selector)}
	return s.request(key, what, isClusterWord)
}

// request records a question and says what may be used of its answer. counts says which of the
// set's words can be about it.
func (s *scopeRun) request(key ScopeKey, what string, counts func(word string) bool) (readWords, error) {
	if len(s.keys) < maxQueries {
		s.keys[key] = true
	}
	if s.only == nil {
		return nil, nil
	}
	allowed, found := s.only.find(key)
	if found && !allowed[everyWord] {
		for _, w := range s.words() {
			if counts(w) && !allowed[w] {
				found, what = false, what+": "+cmp.Or(w, "all that there is")
				break
			}
		}
	}
	if !found {
		s.refused = cmp.Or[error](s.refused, &scopeError{what})
		return nil, s.refused
	}
	return allowed, nil
}

// refusal is the first thing that is not in the scope; nil: there was none.
func (s *scopeRun) refusal() error {
	if s == nil {
		return nil
	}
	return s.refused
}

// result is what was read.
func (s *scopeRun) result() *setScope {
	if s == nil || len(s.keys) == 0 {
		return nil
	}
	return &setScope{words: s.words(), keys: slices.Collect(maps.Keys(s.keys))}
}

// withKeys adds what another run of the same set read.
func (s *setScope) withKeys(other *setScope) *setScope {
	if s == nil || other == nil {
		return cmp.Or(s, other)
	}
	keys := slices.Concat(s.keys, other.keys)
	slices.SortFunc(keys, compareScopeKeys)
	return &setScope{words: SortedUnique(slices.Concat(s.words, other.words)), keys: slices.Compact(keys)}
}

// apply leaves of parameters what may be used.
func (r readWords) apply(params map[string]any) map[string]any {
	if r == nil || r[everyWord] {
		return params
	}
	out, _ := r.applyBelow("", params).(map[string]any)
	return out
}

// digest identifies the words, for what is remembered of an answer.
func (r readWords) digest() string {
	if r == nil {
		return ""
	}
	return "\x00" + strings.Join(slices.Sorted(maps.Keys(r)), "\x00")
}

// applyBelow is apply for what is found under the name above.
func (r readWords) applyBelow(above string, value any) any {
	switch value := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(value))
		for key, v := range value {
			name := above + key
			if r[name] || r.hasSegment(name) {
				out[key] = v
			} else if r.reachesBelow(name) {
				if rest := r.applyBelow(name+".", v); rest != nil {
					out[key] = rest
				}
			}
		}
		return out
	case []any:
		out := make([]any, len(value))
		for i, v := range value {
			out[i] = r.applyBelow(above, v)
		}
		return out
	case map[string]string:
		out := make(map[string]string, len(value))
		for key, v := range value {
			if r[above+key] {
				out[key] = v
			}
		}
		return out
	}
	return nil
}

// hasSegment says that a name is a part of a path, all of which is used. Without Go templates each
// part is a parameter of its own; the pipeline's templates see the parts as a list.
func (r readWords) hasSegment(name string) bool {
	path, _, indexed := strings.Cut(name, "[")
	return indexed && r[path+".segments"]
}

// ofElements are the words for each of a list of clusters.
func (r readWords) ofElements() readWords {
	if r == nil {
		return nil
	}
	out := readWords{}
	for word := range r {
		out[word] = true
		if word == "clusters" {
			out[everyWord] = true
		} else if rest, is := strings.CutPrefix(word, "clusters."); is {
			out[rest] = true
		}
	}
	return out
}

// reachesBelow says that a word is about something under a name.
func (r readWords) reachesBelow(name string) bool {
	for word := range r {
		if strings.HasPrefix(word, name+".") {
			return true
		}
	}
	return false
}

func selectorText(s *metav1.LabelSelector) string {
	if s == nil {
		return ""
	}
	return metav1.FormatLabelSelector(s)
}

// repositoryName is owner and name of a repository's address, for people; the address where it
// has none.
func repositoryName(raw string) string {
	url := normalURL(raw)
	if _, name, found := strings.Cut(url, "/"); found {
		return name
	}
	return withoutCredentials(raw)
}
