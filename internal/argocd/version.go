package argocd

import "sync"

// Version says from which state of an Argo CD something was computed. Two equal ones mean that
// nothing of that kind has changed, or become known or unknown, in between. It counts within one
// process.
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

func (vc *versionCounter) countChange(k changeKind) {
	vc.mu.Lock()
	switch k {
	case ofSets:
		vc.current.Sets++
	case ofProjects:
		vc.current.Projects++
	case ofClusters:
		vc.current.Clusters++
	case ofApplications:
		vc.current.Applications++
	}
	vc.mu.Unlock()
	vc.onChange()
}

func (vc *versionCounter) currentVersion() Version {
	vc.mu.Lock()
	defer vc.mu.Unlock()
	return vc.current
}

// setLine says which line of Argo CD it is, which is a change where it is another one.
func (vc *versionCounter) setLine(found string) {
	vc.change(func(v *Version) { v.Line = found })
}

// setSetPolicy says which policy the ApplicationSet controller has, likewise.
func (vc *versionCounter) setSetPolicy(found SetPolicy) {
	vc.change(func(v *Version) { v.SetPolicy = found })
}

// setIgnored says what Argo CD's settings ignore, likewise.
func (vc *versionCounter) setIgnored(found string) {
	vc.change(func(v *Version) { v.Ignored = found })
}

func (vc *versionCounter) change(set func(*Version)) {
	vc.mu.Lock()
	old := vc.current
	set(&vc.current)
	changed := vc.current != old
	vc.mu.Unlock()
	if changed {
		vc.onChange()
	}
}
