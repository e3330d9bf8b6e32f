package argocd

import "sync"

// Version says which state of an Argo CD something was computed from: two equal
// ones mean that nothing of that kind has changed, or become known or unknown,
// in between. It counts within one process.
type Version struct {
	Sets     uint64 // ApplicationSets, without their status
	Projects uint64 // AppProjects
	Clusters uint64 // cluster Secrets
	// Applications counts changes of what is written into Applications (their
	// specifications, labels and owners), not of how they are.
	Applications uint64
	// Line is the line of Argo CD that its kinds are of, as "3.5"; empty: not known.
	Line string
	// SetPolicy is what the ApplicationSet controller's settings say.
	SetPolicy SetPolicy
	// Ignored is what Argo CD's settings ignore of differences: a JSON object of the entries of
	// resource.customizations.ignoreDifferences by group and kind; empty: nothing, or that isn't known.
	Ignored string
}

// changeKind is what a change was of.
type changeKind int

const (
	ofSets changeKind = iota
	ofProjects
	ofClusters
	ofApplications
)

// versionCounter counts changes and passes them on.
type versionCounter struct {
	onChange func()

	mu      sync.Mutex
	current Version
}

func (n *versionCounter) countChange(k changeKind) {
	n.mu.Lock()
	switch k {
	case ofSets:
		n.current.Sets++
	case ofProjects:
		n.current.Projects++
	case ofClusters:
		n.current.Clusters++
	case ofApplications:
		n.current.Applications++
	}
	n.mu.Unlock()
	n.onChange()
}

func (n *versionCounter) currentVersion() Version {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.current
}

// setLine says which line of Argo CD it is, which is a change where it is another one.
func (n *versionCounter) setLine(found string) {
	n.change(func(v *Version) { v.Line = found })
}

// setSetPolicy says which policy the ApplicationSet controller has, likewise.
func (n *versionCounter) setSetPolicy(found SetPolicy) {
	n.change(func(v *Version) { v.SetPolicy = found })
}

// setIgnored says what Argo CD's settings ignore, likewise.
func (n *versionCounter) setIgnored(found string) {
	n.change(func(v *Version) { v.Ignored = found })
}

func (n *versionCounter) change(set func(*Version)) {
	n.mu.Lock()
	old := n.current
	set(&n.current)
	changed := n.current != old
	n.mu.Unlock()
	if changed {
		n.onChange()
	}
}
