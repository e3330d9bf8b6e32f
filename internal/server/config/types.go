package config

import (
	"strconv"
	"strings"
	"time"

	"github.com/liftlock/liftlock/policies"
)

// Config is the server's file with its defaults filled in, its variables
// expanded and its secret files read.
type Config struct {
	// Listen is the address of the API and the console, and of the webhooks where
	// they have none of their own.
	Listen string `yaml:"listen"`
	// Webhooks is where deliveries come in.
	Webhooks Webhooks `yaml:"webhooks"`
	// TLS is the certificate of all listeners; empty: they speak plain HTTP.
	TLS TLS `yaml:"tls"`
	// Hosts are further names under which the server is reached, beside that of
	// ExternalURL, localhost and IP addresses.
	Hosts []string `yaml:"hosts"`
	// TrustedProxies are the addresses, or ranges like 10.0.0.0/8, of proxies whose
	// X-Forwarded-For is believed.
	TrustedProxies []string `yaml:"trustedProxies"`
	// ReadAccess is ReadOpen or ReadToken.
	ReadAccess string `yaml:"readAccess"`
	// ExternalURL is where people and forges reach the server, without a
	// trailing slash; empty when it isn't given.
	ExternalURL string `yaml:"externalURL"`
	// Store is the database's URL, sqlite:// with a path or postgres://. It may
	// hold a password.
	Store     Secret `yaml:"store"`
	StoreFile string `yaml:"storeFile"`
	// DataDir holds the Git mirrors and, by default, the database.
	DataDir string `yaml:"dataDir"`
	// SweepInterval is how often every open promotion is evaluated without an event.
	SweepInterval time.Duration `yaml:"sweepInterval"`

	Forges       []Forge      `yaml:"forges"`
	Repositories []Repository `yaml:"repositories"`
	ArgoCD       []ArgoCD     `yaml:"argocd"`
	API          API          `yaml:"api"`
	Access       []Access     `yaml:"access"` // none: every reader reads all
	OIDC         *OIDC        `yaml:"oidc"`   // nil: nobody logs in to the console
	Floor        []Floor      `yaml:"floor"`
	Freezes      []Freeze     `yaml:"freezes"`
	Prometheus   []Prometheus `yaml:"prometheus"`
	Registries   []Registry   `yaml:"registries"` // whose images may be looked into
	Sources      []GitSource  `yaml:"sources"`    // repositories that renderings may read
	Charts       []ChartHost  `yaml:"charts"`     // chart repositories that renderings may read
	Endpoints    []Endpoint   `yaml:"endpoints"`
	Channels     []Channel    `yaml:"channels"`
	Authors      Authors      `yaml:"authors"`
	Signing      *Signing     `yaml:"signing"` // nil: commits aren't signed
	Generators   Generators   `yaml:"generators"`
}

// SetDefaults fills in what the file may leave out.
func (c *Config) SetDefaults() {
	c.Listen = "127.0.0.1:8080"
	c.DataDir = "./data"
	c.SweepInterval = 5 * time.Minute
}

// Who may read the console, the API and the metrics.
const (
	ReadOpen  = "open"  // whoever reaches the server; the default where it listens on loopback only
	ReadToken = "token" // holders of one of the API's tokens, and who has logged in, whatever their role
)

// The types of channels.
const (
	ChannelWebhook = "webhook"
	ChannelSlack   = "slack"
	ChannelTeams   = "teams"
)

// Channel is where notifications go that pipelines ask for.
type Channel struct {
	Name       string `yaml:"name"`
	Type       string `yaml:"type"` // webhook, slack or teams
	URL        Secret `yaml:"url"`  // whoever has that of Slack or Teams may write there
	URLFile    string `yaml:"urlFile"`
	Secret     Secret `yaml:"secret"` // webhook: whsec_ and a key in base64
	SecretFile string `yaml:"secretFile"`
}

// Prometheus is a server that the gate metric may ask, by its name.
type Prometheus struct {
	Name            string  `yaml:"name"`
	URL             string  `yaml:"url"` // what /api/v1 is below
	BearerToken     Secret  `yaml:"bearerToken"`
	BearerTokenFile string  `yaml:"bearerTokenFile"`
	Username        string  `yaml:"username"` // basic authentication
	Password        Secret  `yaml:"password"`
	PasswordFile    string  `yaml:"passwordFile"`
	TLS             CallTLS `yaml:"tls"`
}

// Registry is a container registry whose images may be looked into for what they were built
// from, and whose tags may be listed.
type Registry struct {
	Host         string `yaml:"host"`     // as image names have it
	Username     string `yaml:"username"` // with password; neither, and no dockerConfig: nobody logs in
	Password     Secret `yaml:"password"`
	PasswordFile string `yaml:"passwordFile"`
	// DockerConfig is a file as docker login writes it, or of a Kubernetes pull secret, that has the registry's credentials.
	DockerConfig string  `yaml:"dockerConfig"`
	PlainHTTP    bool    `yaml:"plainHTTP"` // it is spoken to without TLS
	TLS          CallTLS `yaml:"tls"`
	// WebhookSecret is what the registry's webhooks have as Authorization, or in their address; empty: they aren't taken.
	WebhookSecret     Secret `yaml:"webhookSecret"`
	WebhookSecretFile string `yaml:"webhookSecretFile"`
}

// GitSource is a Git repository that targets deploy from, and which is only read.
type GitSource struct {
	URL          string `yaml:"url"`      // as Applications have it, or another spelling of it; http or https
	Username     string `yaml:"username"` // with password; neither: it is read without
	Password     Secret `yaml:"password"` // or a token
	PasswordFile string `yaml:"passwordFile"`
	CAFile       string `yaml:"caFile"` // of the authorities of its certificate, in PEM; empty: the system's
}

// ChartHost is a Helm repository, or a part of a registry, whose charts targets deploy.
type ChartHost struct {
	URL          string   `yaml:"url"`      // https://charts.example.com/stable, or oci://registry.example.com/charts
	Hosts        []string `yaml:"hosts"`    // that it may send to for its charts, besides its own
	Username     string   `yaml:"username"` // with password; neither: nobody logs in
	Password     Secret   `yaml:"password"`
	PasswordFile string   `yaml:"passwordFile"`
	TLS          CallTLS  `yaml:"tls"`
}

// Endpoint is a server that the gate http may ask, by its name.
type Endpoint struct {
	Name              string  `yaml:"name"`
	URL               string  `yaml:"url"`
	Secret            Secret  `yaml:"secret"` // both sides sign with it
	SecretFile        string  `yaml:"secretFile"`
	Authorization     Secret  `yaml:"authorization"` // the header's value, "Bearer …"; empty: none
	AuthorizationFile string  `yaml:"authorizationFile"`
	TLS               CallTLS `yaml:"tls"`
}

// CallTLS is whose certificates are believed where something is called, and what is shown
// there.
type CallTLS struct {
	CAFile   string `yaml:"caFile"`   // authorities besides the system's, in PEM
	Insecure bool   `yaml:"insecure"` // its certificate isn't checked
	CertFile string `yaml:"certFile"` // our own, with the intermediate certificates behind it
	KeyFile  string `yaml:"keyFile"`
}

// Webhooks is where deliveries come in.
type Webhooks struct {
	// Listen is an address for deliveries alone; empty: they come in at the
	// server's.
	Listen string `yaml:"listen"`
	// ExternalURL is where forges reach it, without a trailing slash; by default
	// the server's.
	ExternalURL string `yaml:"externalURL"`
}

// TLS is a certificate and its key, in PEM files that are read again when they change.
type TLS struct {
	CertFile string `yaml:"certFile"` // with the intermediate certificates behind it
	KeyFile  string `yaml:"keyFile"`
}

// ForgeByName finds a forge; nil when there is none.
func (c *Config) ForgeByName(name string) *Forge {
	for i := range c.Forges {
		if c.Forges[i].Name == name {
			return &c.Forges[i]
		}
	}
	return nil
}

// ArgoCDByName finds an Argo CD; the empty name is the first one. nil when there
// is none.
func (c *Config) ArgoCDByName(name string) *ArgoCD {
	for i := range c.ArgoCD {
		if name == "" || c.ArgoCD[i].Name == name {
			return &c.ArgoCD[i]
		}
	}
	return nil
}

// The types of forges.
const (
	GitHub = "github"
	Gitea  = "gitea"
	GitLab = "gitlab"
)

// Forge is a Git hosting service and how to speak to it.
type Forge struct {
	Name string `yaml:"name"` // also in the webhooks' address, /webhooks/<name>
	Type string `yaml:"type"` // github, gitea or gitlab
	URL  string `yaml:"url"`  // of its API; empty: the public github.com or gitlab.com
	Auth Auth   `yaml:"auth"`
	// CAFile has the authorities of its certificate, in PEM: besides the system's for its
	// API, alone for Git. Empty: the system's.
	CAFile string `yaml:"caFile"`
	// PublicLimits keeps to the limits of calls that github.com or gitlab.com publishes,
	// wherever URL is: a proxy before it, or a server with the same limits switched on.
	PublicLimits bool `yaml:"publicLimits"`
	// WebhookSecrets: the first signs new hooks, all are accepted.
	WebhookSecrets     []Secret `yaml:"webhookSecrets"`
	WebhookSecretsFile string   `yaml:"webhookSecretsFile"`
	// Limits are those of single calls that a GitLab's administrator set.
	Limits CallLimits `yaml:"limits"`
}

// CallLimits are how many calls of one kind a GitLab allows an account in a minute, which its
// answers don't tell. nil means the limits that gitlab.com publishes, or GitLab's own default; 0
// means that it sets none.
type CallLimits struct {
	NewNotes     *int `yaml:"newNotesPerMinute"`
	ProjectReads *int `yaml:"projectReadsPerMinute"`
}

// Auth is how Liftlock proves who it is.
type Auth struct {
	Token     Secret `yaml:"token"`
	TokenFile string `yaml:"tokenFile"`
	App       *App   `yaml:"app"` // instead of a token: as a GitHub App; nil: it isn't one
}

// App is the GitHub App that Liftlock works as, wherever it is installed.
type App struct {
	ID       int64  `yaml:"id"`       // or ClientID
	ClientID string `yaml:"clientID"` // or ID
	// PrivateKeyFile has the App's key in PEM, or several while one is exchanged for another;
	// it is read again when it changes.
	PrivateKeyFile string   `yaml:"privateKeyFile"`
	Installations  []string `yaml:"installations"`  // the owners whose installations are used; none: all
	InstallationID int64    `yaml:"installationID"` // the only one that is used; 0: they are found
	// ManageWebhook points the App's webhook at the server; needs externalURL.
	ManageWebhook bool `yaml:"manageWebhook"`
}

// Issuer is by what GitHub knows the App.
func (a *App) Issuer() string {
	if a.ClientID != "" {
		return a.ClientID
	}
	return strconv.FormatInt(a.ID, 10)
}

// Repository is a repository that Liftlock looks after.
type Repository struct {
	Forge  string `yaml:"forge"`
	Name   string `yaml:"name"`   // owner/name; on a GitLab the owner may be a group in others
	Branch string `yaml:"branch"` // the tracked branch
	// ManageWebhooks creates and repairs the webhook; needs externalURL.
	ManageWebhooks bool `yaml:"manageWebhooks"`
	// Onboard has a repository without a pipeline file proposed one by a pull request.
	Onboard bool `yaml:"onboard"`
	// PollInterval is how often the branch is fetched without an event.
	PollInterval time.Duration `yaml:"pollInterval"`
	// DiscoverInterval is how often new tags and versions are looked for, where a source environment has discover.
	DiscoverInterval time.Duration `yaml:"discoverInterval"`
}

// SetDefaults fills in what a repository may leave out.
func (r *Repository) SetDefaults() {
	r.Branch = "main"
	r.PollInterval = 3 * time.Minute
	r.DiscoverInterval = 5 * time.Minute
}

// Split is the repository's owner and its own name, which is what follows the last slash.
func (r *Repository) Split() (owner, name string) {
	if i := strings.LastIndexByte(r.Name, '/'); i >= 0 {
		return r.Name[:i], r.Name[i+1:]
	}
	return r.Name, ""
}

// How Argo CD is asked to look again.
const (
	RefreshAnnotation = "annotation"
	RefreshAPI        = "api"
	RefreshOff        = "off"
)

// These say who renders the manifests that our pull requests show.
const (
	RenderLocal  = "local"
	RenderArgoCD = "argocd" // needs an api
)

// How the git file generator reads its globs.
const (
	GlobbingGit        = "git"        // * crosses /, the controller's default
	GlobbingDoublestar = "doublestar" // --enable-new-git-file-globbing
)

// ArgoCD is an Argo CD that runs targets.
type ArgoCD struct {
	Name       string     `yaml:"name"`
	Kubernetes Kubernetes `yaml:"kubernetes"`
	API        *ArgoCDAPI `yaml:"api"` // nil: it isn't used
	// APIAlone says that there is an api and no kubernetes: everything goes by the API.
	APIAlone bool   `yaml:"-"`
	Refresh  string `yaml:"refresh"`
	Render   string `yaml:"render"`
	Globbing string `yaml:"globbing"`
	Version  string `yaml:"version"` // its own, as v3.5.7, or its line; empty: what its kinds show
	// The ApplicationSet controller's --policy, which nothing that it shows tells of (empty: none),
	// and its --enable-policy-override.
	ApplicationSetPolicy         string `yaml:"applicationSetPolicy"`
	ApplicationSetPolicyOverride bool   `yaml:"applicationSetPolicyOverride"`

	Clusters Clusters `yaml:"clusters"`
}

// SetDefaults fills in what an Argo CD may leave out.
func (a *ArgoCD) SetDefaults() {
	a.Kubernetes.Namespaces = []string{"argocd"}
	a.Globbing = GlobbingGit
	a.Render = RenderLocal
}

// Kubernetes is where an Argo CD's Applications are read.
type Kubernetes struct {
	Kubeconfig string   `yaml:"kubeconfig"` // empty: in-cluster, then the usual lookup
	Context    string   `yaml:"context"`    // empty: the kubeconfig's current one
	Namespaces []string `yaml:"namespaces"` // that Applications live in; the first is Argo CD's own
}

// ArgoCDAPI is how an Argo CD's own API is reached, with the token of an account or of a
// project's role.
type ArgoCDAPI struct {
	URL       string `yaml:"url"` // of argocd-server
	Token     Secret `yaml:"token"`
	TokenFile string `yaml:"tokenFile"`
	CAFile    string `yaml:"caFile"`   // authorities besides the system's, in PEM
	Insecure  bool   `yaml:"insecure"` // its certificate isn't checked
	// Without kubernetes: Argo CD's own namespace, and the projects whose Applications are
	// watched; none: all.
	Namespace string   `yaml:"namespace"`
	Projects  []string `yaml:"projects"`
}

// Namespace is Argo CD's own namespace.
func (a *ArgoCD) Namespace() string {
	if a.APIAlone && a.API.Namespace != "" {
		return a.API.Namespace
	}
	return a.Kubernetes.Namespaces[0]
}

// Role is what the holder of an API token may do, in rising order.
type Role string

// The roles.
const (
	Viewer     Role = "viewer"
	Operator   Role = "operator"
	BreakGlass Role = "breakglass"
)

// API is who may use the HTTP API; without tokens it only reads.
type API struct {
	Tokens []Token `yaml:"tokens"`
}

// Token is one API token.
type Token struct {
	Name      string `yaml:"name"` // in the audit trail
	Role      Role   `yaml:"role"`
	Token     Secret `yaml:"token"`
	TokenFile string `yaml:"tokenFile"`
}

// Floor is what no pipeline file can go below in some environments.
type Floor struct {
	Environments []string            `yaml:"environments"` // globs on names
	Approvals    *policies.Approvals `yaml:"approvals"`    // as the gate has them
}

// Freeze keeps promotions into some environments from merging for a while, whatever the
// pipeline files say.
type Freeze struct {
	Environments []string        `yaml:"environments"` // globs on names
	From         policies.Moment `yaml:"from"`
	To           policies.Moment `yaml:"to"`
	Timezone     string          `yaml:"timezone"`
	Reason       string          `yaml:"reason"`
}

// Gate is the freeze as a gate has it.
func (f *Freeze) Gate() *policies.Freeze {
	return &policies.Freeze{From: f.From, To: f.To, Timezone: f.Timezone, Reason: f.Reason}
}

// Authors says how a release's authors are told, whose approval doesn't count.
type Authors struct {
	// IgnoreUnlinked lets a release be approved of which an author's address belongs to
	// no account on the forge, and so might be the approver's.
	IgnoreUnlinked bool `yaml:"ignoreUnlinked"`
}

// Generators are the ApplicationSet generators that ask the network, and which
// of them may. They send tokens from the Secrets of the cluster that Argo CD
// runs in to addresses that an ApplicationSet names, so none may by default.
type Generators struct {
	SCMProvider bool `yaml:"scmProvider"`
	PullRequest bool `yaml:"pullRequest"`
	Plugin      bool `yaml:"plugin"`
}
