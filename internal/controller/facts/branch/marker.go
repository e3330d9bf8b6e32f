package branch

import (
	"cmp"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/store/record"

	"github.com/liftlock/liftlock/internal/appset/history"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/promotion"
)

// The body of our pull requests carries a mark with their content, for the day when the commit
// itself is gone from Git. Anybody who may write can edit a body. So a mark may restrain, and it
// loosens only where its signature shows that the server wrote it for the very head.
var markerPattern = regexp.MustCompile(
	`<!-- liftlock:(promotion|revert) release=([0-9a-f]{64})(?: of=(\d+))?(?: with=([a-z0-9:,-]+))?(?: sig=([0-9a-f]{64}))? -->`)

// Marker is what a mark says.
type Marker struct {
	Kind    string // promotion.KindPromotion or promotion.KindRevert
	Release string
	Of      int                // a revert's promotion; 0: none, or unknown
	Members []promotion.Member // where several components move together: the release is theirs together, and each has its own besides
}

// String renders the mark without a signature.
func (ma Marker) String() string { return "<!-- " + ma.text() + " -->" }

func (ma Marker) text() string {
	s := fmt.Sprintf("liftlock:%s release=%s", ma.Kind, ma.Release)
	if ma.Of != 0 {
		s += fmt.Sprintf(" of=%d", ma.Of)
	}
	for i, p := range ma.Members {
		s += []string{" with=", ","}[min(i, 1)] + p.Component + ":" + p.Release
	}
	return s
}

// ReadMarker reads the mark of a body; false when it has none.
func ReadMarker(body string) (Marker, bool) {
	m := markerPattern.FindStringSubmatch(body)
	if m == nil {
		return Marker{}, false
	}
	of, err := strconv.Atoi(cmp.Or(m[3], "0"))
	if err != nil {
		of = 0
	}
	k := Marker{Kind: m[1], Release: m[2], Of: of}
	for part := range strings.SplitSeq(m[4], ",") {
		if component, release, ok := strings.Cut(part, ":"); ok && len(release) == 64 {
			k.Members = append(k.Members, promotion.Member{Component: component, Release: release})
		}
	}
	return k, true
}

// MarkedMembers are the components that a body's mark names, with their releases.
func MarkedMembers(body string) []promotion.Member {
	k, _ := ReadMarker(body)
	return k.Members
}

// Releases are the releases that a mark says move, by component; component is the one
// of a pull request of its own.
func (ma Marker) Releases(component string) map[string]string {
	if len(ma.Members) == 0 {
		return map[string]string{component: ma.Release}
	}
	out := make(map[string]string, len(ma.Members))
	for _, m := range ma.Members {
		out[m.Component] = m.Release
	}
	return out
}

// MarkSigner signs marks with secrets that only the server knows. The zero value signs
// nothing and believes nothing.
type MarkSigner struct{ keys [][]byte }

// NewMarkSigner derives a key from each of the secrets: the first signs, all are
// believed, so that a secret can be replaced.
func NewMarkSigner(secrets ...[]byte) (MarkSigner, error) {
	var s MarkSigner
	for _, secret := range secrets {
		key, err := hkdf.Key(sha256.New, secret, nil, "liftlock pull request mark v1", sha256.Size)
		if err != nil {
			return MarkSigner{}, fmt.Errorf("derive the key that signs the marks of pull requests: %w", err)
		}
		s.keys = append(s.keys, key)
	}
	return s, nil
}

// HasKeys says that marks can be signed.
func (ms MarkSigner) HasKeys() bool { return len(ms.keys) > 0 }

// Sign renders a mark that is believed on this branch of the repository while its head
// is this commit.
func (ms MarkSigner) Sign(repo, branch, head string, k Marker) string {
	if len(ms.keys) == 0 {
		return k.String()
	}
	return fmt.Sprintf("<!-- %s sig=%s -->", k.text(), hex.EncodeToString(signature(ms.keys[0], repo, branch, head, k)))
}

// Signed reads the mark of a body that one of the server's secrets signed for one of
// these heads; false when there is none.
func (ms MarkSigner) Signed(repo, branch string, heads []string, body string) (Marker, bool) {
	m := markerPattern.FindStringSubmatch(body)
	if m == nil || m[5] == "" {
		return Marker{}, false
	}
	got, err := hex.DecodeString(m[5])
	if err != nil {
		return Marker{}, false
	}
	k, _ := ReadMarker(body)
	for _, key := range ms.keys {
		for _, head := range heads {
			if head != "" && hmac.Equal(got, signature(key, repo, branch, head, k)) {
				return k, true
			}
		}
	}
	return Marker{}, false
}

func signature(key []byte, repo, branch, head string, k Marker) []byte {
	return signText(key, repo, branch, head, k.text())
}

func signText(key []byte, repo, branch, head, text string) []byte {
	mac := hmac.New(sha256.New, key)
	for _, part := range []string{repo, branch, head, text} {
		fmt.Fprintf(mac, "%d:%s", len(part), part)
	}
	return mac.Sum(nil)
}

// closingPattern is the mark of a pull request that is no veto, though it is closed unmerged: when it was
// closed, and what proves that the server wrote it.
var closingPattern = regexp.MustCompile(`<!-- liftlock:closed at=(\d{1,12}) sig=([0-9a-f]{64}) -->\n?`)

// ClosingTolerance is how far a closing mark's time may be from the forge's: two clocks, and the
// time between the mark and the close. A person who opens the pull request again, and closes it
// later, is meant.
const ClosingTolerance = 10 * time.Minute

// MarkClosed adds to a body the mark that closing the pull request at a time is no veto, in place of an
// older one. The body stays as it is where the server has no secret, or it would become too long.
func (ms MarkSigner) MarkClosed(repo string, pr *forge.PullRequest, at time.Time, body string) string {
	body = closingPattern.ReplaceAllLiteralString(body, "")
	if len(ms.keys) == 0 || len(body) > maxMarkedBody {
		return body
	}
	text := closingText(pr.Number, at.Unix())
	return fmt.Sprintf("%s\n<!-- liftlock:closed at=%d sig=%s -->", strings.TrimRight(body, "\n"), at.Unix(),
		hex.EncodeToString(signText(ms.keys[0], repo, pr.Branch, pr.Head, text)))
}

// maxMarkedBody bounds the bodies that get a closing mark: forges take 64 KiB.
const maxMarkedBody = 60 << 10

func closingText(number int, at int64) string {
	return fmt.Sprintf("liftlock:closed number=%d at=%d", number, at)
}

// IsClosingMarked says that a pull request's body has the mark that its close is no veto.
func (ms MarkSigner) IsClosingMarked(repo string, pr *forge.PullRequest) bool {
	for _, m := range closingPattern.FindAllStringSubmatch(pr.Body, maxClosingMarks) {
		at, err := strconv.ParseInt(m[1], 10, 64)
		got, hexErr := hex.DecodeString(m[2])
		if err != nil || hexErr != nil || pr.ClosedAt.Sub(time.Unix(at, 0)).Abs() > ClosingTolerance {
			continue
		}
		for _, key := range ms.keys {
			if hmac.Equal(got, signText(key, repo, pr.Branch, pr.Head, closingText(pr.Number, at))) {
				return true
			}
		}
	}
	return false
}

// maxClosingMarks bounds how many are read: anybody who may write can add some.
const maxClosingMarks = 4

// TrailerState is the trailer of a commit of the state branch that proves that Liftlock made it.
const TrailerState = "Liftlock-State"

// SignState is the value of TrailerState of a commit of the state branch, by its parent (empty: it has none)
// and its tree; empty where the server has no secret.
func (ms MarkSigner) SignState(repo, parent, tree string) string {
	if len(ms.keys) == 0 {
		return ""
	}
	return hex.EncodeToString(signText(ms.keys[0], repo, history.StateBranch, parent, stateText(tree)))
}

func stateText(tree string) string { return "liftlock:state tree=" + tree }

// isStateSigned says that Liftlock made a commit of the state branch.
func (ms MarkSigner) isStateSigned(repo string, c *git.CommitInfo) bool {
	got, err := hex.DecodeString(c.Trailers[TrailerState])
	if err != nil || len(got) == 0 || len(c.Parents) > 1 {
		return false
	}
	parent := strings.Join(c.Parents, "")
	return slices.ContainsFunc(ms.keys, func(key []byte) bool {
		return hmac.Equal(got, signText(key, repo, history.StateBranch, parent, stateText(c.Tree)))
	})
}

// Pushed is what the store says that we put onto one of our branches: the heads that
// may be there and what each of them moves, the last push's last. More than one only until the forge
// shows the last one.
type Pushed []PushedHead

// PushedHead is a commit that we made and what it moves.
type PushedHead struct {
	Head     string            `json:"head"`
	Releases map[string]string `json:"releases"` // by component
}

// PushedHeads are what Liftlock pushed, by branch.
var PushedHeads = record.Declare[record.InRepository, Pushed](record.Declaration{
	Name: "pushed-heads", Owner: "controller/act", Lifetime: record.UntilDropped, Strict: true,
	Doc: "The heads that Liftlock put onto one of its branches, and the releases that each moves. Without it, marks that the server " +
		"signed prove them.",
})

// Find finds what was pushed as one of these heads; nil when none of them was.
func (p Pushed) Find(heads []string) map[string]string {
	for _, h := range heads {
		for i := range p {
			if p[i].Head == h {
				return p[i].Releases
			}
		}
	}
	return nil
}
