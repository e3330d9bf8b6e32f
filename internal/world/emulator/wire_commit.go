package emulator

import "time"

type wireCommit struct {
	SHA       string        `json:"sha"`
	NodeID    string        `json:"node_id"`
	URL       string        `json:"url"`
	HTMLURL   string        `json:"html_url"`
	Commit    wireGitCommit `json:"commit"`
	Author    *wireUser     `json:"author"`
	Committer *wireUser     `json:"committer"`
	Parents   []wireObject  `json:"parents"`
	Files     []wireFile    `json:"files,omitempty"`
}

type wireGitCommit struct {
	Author    wireIdent  `json:"author"`
	Committer wireIdent  `json:"committer"`
	Message   string     `json:"message"`
	Tree      wireObject `json:"tree"`

	Verification *verification `json:"verification,omitempty"` // nil: left out
}

type wireIdent struct {
	Name  string    `json:"name"`
	Email string    `json:"email"`
	Date  time.Time `json:"date"`
}

type wireObject struct {
	Type string `json:"type,omitempty"`
	SHA  string `json:"sha"`
	URL  string `json:"url"`
}

type wireFile struct {
	Filename string `json:"filename"`
	Status   string `json:"status"`
}

func (f *Forge) wireCommit(r *repository, c commit) wireCommit {
	w := wireCommit{
		SHA: c.SHA, NodeID: "C_" + c.SHA, URL: f.repoURL(r) + "/commits/" + c.SHA,
		HTMLURL: f.url + "/" + r.fullName() + "/commit/" + c.SHA,
		Commit: wireGitCommit{
			Author:    wireIdent{Name: c.Author.Name, Email: c.Author.Email, Date: c.Author.When},
			Committer: wireIdent{Name: c.Committer.Name, Email: c.Committer.Email, Date: c.Committer.When},
			Message:   c.Message, Tree: wireObject{SHA: c.Tree, URL: f.repoURL(r) + "/git/trees/" + c.Tree},
		},
		Author: f.wireUser(f.accountByEmail(c.Author.Email)), Committer: f.wireUser(f.accountByEmail(c.Committer.Email)),
		Parents: []wireObject{},
	}
	for _, p := range c.Parents {
		w.Parents = append(w.Parents, wireObject{SHA: p, URL: f.repoURL(r) + "/commits/" + p})
	}
	for _, set := range []struct {
		status string
		paths  []string
	}{{"added", c.Added}, {"removed", c.Removed}, {"modified", c.Changed}} {
		for _, path := range set.paths {
			w.Files = append(w.Files, wireFile{Filename: path, Status: set.status})
		}
	}
	return w
}
