package forge

// PusherSearch finds who pushed the commits of a pull request, among the moves of its branch.
// The newest of them needn't say it: whoever may push can move the branch as often as it takes to
// have what she pushed before far behind, also when the pull request is merged.
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

// Add looks at a move, newest first. Of several to one commit the oldest counts: the others
// brought back what had been there.
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

// IsComplete says that the moves lead from the head down to a commit that isn't the pull
// request's. More of them may be looked at all the same.
func (ps *PusherSearch) IsComplete() bool { return ps.next == "" }
