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
}

// kind is what a change was of.
type kind int

const (
	ofSets kind = iota
	ofProjects
	ofClusters
	ofApplications
)

// news counts changes and passes them on.
type news struct {
	onChange func()

	mu  sync.Mutex
	now Version
}

func (n *news) tell(k kind) {
	n.mu.Lock()
	switch k {
	case ofSets:
		n.now.Sets++
	case ofProjects:
		n.now.Projects++
	case ofClusters:
		n.now.Clusters++
	case ofApplications:
		n.now.Applications++
	}
	n.mu.Unlock()
	n.onChange()
}

func (n *news) version() Version {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.now
}
