package rest

import (
	"crypto/x509"
	"net/http"
	"net/url"
	"time"

	"github.com/liftlock/liftlock/internal/cache"
	"github.com/liftlock/liftlock/internal/forge"
)

// Options say which forge, and who we are: what every driver is made with.
type Options struct {
	URL        string         // the server's address, as the driver's New has it
	Token      string         // the credentials, which nothing that is said of an answer repeats
	HTTPClient *http.Client   // its Transport is used (proxies, certificates); nil: the default one
	RootCAs    *x509.CertPool // whose certificates are believed where HTTPClient has no Transport; nil: the system's
	UserAgent  string         // empty: "liftlock"
	Caches     *cache.Group   // where the driver's caches are counted; nil: nowhere

	// OnCall is told every call that went out, for metrics. It gets a name of bounded cardinality
	// ("GET pulls/reviews") and the HTTP status as it came over the wire (0 without an answer). It
	// also gets how long the call took with its body read. It may be nil and is called
	// concurrently.
	OnCall func(endpoint string, status int, d time.Duration)

	// OnLimited is told when the forge refuses a call for the number of them, once for all those
	// that were under way. It is told until when no call is made. With an endpoint, only calls of
	// that one aren't made. It must not call back and may be nil.
	OnLimited func(until time.Time, endpoint string)
	// Exchange shares knowledge of the limits with other processes that call as the same identity
	// and go by the same clock, Now; nil: there are none.
	Exchange     forge.Exchange
	PublicLimits bool             // keep to the limits that the public service publishes, whichever server it is
	Now          func() time.Time // the clock of limits and tokens; nil: time.Now
}

// Protocol is how the calls of one identity go out: its Options, and what its driver adds.
type Protocol struct {
	Options
	Base          *url.URL     // the API's root; credentials are sent below its scheme and host only
	Authorization string       // the header's value; empty sends none
	Credentials   Credentials  // who gives that value, and what goes with it, for each call; nil: Authorization has it
	Header        string       // which carries it; empty: Authorization
	Headers       http.Header  // further ones, which every call has instead of its own
	CacheBytes    int64        // room for conditional requests; 0 switches them off
	Answers       *AnswerCache // that room where several clients share it; nil: one of the client's own
	Identity      string       // whose answers they are in a shared room, and whose limits are exchanged

	// IsIntermediary says that an answer isn't the forge's but something's in between, as the login page
	// of a proxy; nil: none is taken for that.
	IsIntermediary func(*http.Response) bool

	// Budget is the identity's where several clients share it; nil: the client's own, of
	// Limits and OnLimited. A shared one has its own Exchange.
	Budget *Budget
	// Limits are the forge's published ones; none: what its answers say is kept to alone.
	Limits []Limit
	// IsOfEndpoint says that a refusal for the number of calls is about those of its endpoint
	// alone: the others go on. nil: none is.
	IsOfEndpoint func(resp *http.Response, body []byte) bool
}
