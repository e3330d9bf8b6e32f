package forge

// PusherSearch finds who pushed the commits of a pull request, among the moves of its branch. The
// newest of them needn't say it. An account that may push can move the branch often enough to have
// its earlier pushes far behind, also when the pull request is merged.
type PusherSearch struct {
	commits map[string]*CommitAuthors
	next    string // the commit whose push is looked for now; empty: all are found
}

// NewPusherSearch is one that fills in the Pusher of commits; head is the pull request's.
func NewPusherSearch(head string, all []CommitAuthors) *PusherSearch {
	s := &PusherSearch{commits: make(map[string]*CommitAuthors, len(all)), next: head}
	for i := range all {
		s.commits[all[i].Commit] = &all[i]
	}
	return s
}

// Add takes in a move, newest first. Where several moves go to one commit the oldest counts: the
// others brought back what had been there.
func (ps *PusherSearch) Add(p Push) {
	if c := ps.commits[p.After]; c != nil {
		c.Pusher = p.By
	}
	if ps.next == "" || p.After != ps.next {
		return
	}
	ps.next = ""
	if ps.commits[p.Before] != nil {
		ps.next = p.Before
	}
}

// IsComplete says that the moves lead from the head down to a commit that isn't the pull request's.
// More of them may be added all the same.
func (ps *PusherSearch) IsComplete() bool { return ps.next == "" }
