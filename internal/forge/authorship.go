package forge

// Authorship is how far it is known that a comment says what its author wrote. Accounts that may
// write to a repository edit others' comments on GitHub and Gitea. Within the second in which one
// was written nothing in the lists shows that.
type Authorship int

// The authorships.
const (
	// AuthorshipUnknown: the forge doesn't tell who edits comments, and the author hasn't confirmed it.
	AuthorshipUnknown Authorship = iota
	// AuthorsOwn: nobody has edited it.
	AuthorsOwn
	// ConfirmedByAuthor: the forge doesn't tell who edits comments, and the author has left the reaction
	// Confirmation on it.
	ConfirmedByAuthor
	// EditedLater: the comment was edited, by any account.
	EditedLater
)

// Confirmation is the reaction by which authors say that a comment is theirs.
const Confirmation = "+1"
