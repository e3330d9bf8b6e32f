package config

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/liftlock/liftlock/internal/pipeline/strictyaml"
	"github.com/liftlock/liftlock/policies"
)

const (
	// minTokenLength is the least that can't be guessed over the network: 16
	// characters are 64 bits even in hexadecimal.
	minTokenLength = 16
	// minWebhookSecretLength: the secret signs what anybody can send.
	minWebhookSecretLength = 8
	// minInterval keeps a slip of the keyboard (3ms) from flooding a forge.
	minInterval   = time.Second
	maxNameLength = 63
	// minRedactedLength is the length from which a variable's value is hidden in errors;
	// shorter ones are no secrets and are part of ordinary words.
	minRedactedLength = 6
)

var (
	namePattern      = regexp.MustCompile(`^[a-z0-9][a-z0-9-]*$`)
	ownerNamePattern = regexp.MustCompile(`^[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+$`)
	projectPattern   = regexp.MustCompile(`^[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+){1,20}$`) // GitLab nests groups 20 deep
	branchPattern    = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_./-]*$`)
	namespacePattern = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)
)

// checker collects what is wrong with a server's file. Its messages never show
// the values of secrets, nor those of URLs, which may hold one.
type checker struct {
	strictyaml.Checker
	folder string
	// expanded are the variables that were used.
	expanded map[string]string
	warnings strictyaml.Errors
}

// hideVariables takes the variables' values out of a message: a secret that
// somebody puts where a name belongs must not be shown either.
func (c *checker) hideVariables(message string) string {
	for name, value := range c.expanded {
		if len(value) >= minRedactedLength {
			message = strings.ReplaceAll(message, value, "${"+name+"}")
		}
	}
	return message
}

// fillDefaults fills in what depends on other keys, and brings paths and addresses
// into one form.
func (c *checker) fillDefaults(config *Config) {
	c.fillListeners(config)
	if !c.Doc.Has("store") && !c.Doc.Has("storeFile") {
		config.Store = Secret("sqlite://" + filepath.ToSlash(filepath.Join(config.DataDir, "liftlock.db")))
	}
	for i := range config.Forges {
		files := []*string{&config.Forges[i].CAFile}
		if a := config.Forges[i].Auth.App; a != nil {
			files = append(files, &a.PrivateKeyFile)
		}
		for _, file := range files {
			if *file != "" {
				*file = c.resolvePath(*file)
			}
		}
	}
	for i := range config.Prometheus {
		c.resolveTLS(&config.Prometheus[i].TLS)
	}
	for i := range config.Registries {
		c.resolveTLS(&config.Registries[i].TLS)
		if file := &config.Registries[i].DockerConfig; *file != "" {
			*file = c.resolvePath(*file)
		}
	}
	for i := range config.Sources {
		if file := &config.Sources[i].CAFile; *file != "" {
			*file = c.resolvePath(*file)
		}
	}
	for i := range config.Charts {
		c.resolveTLS(&config.Charts[i].TLS)
	}
	for i := range config.Endpoints {
		c.resolveTLS(&config.Endpoints[i].TLS)
	}
	if s := config.Signing; s != nil && s.SSHKeyFile != "" {
		s.SSHKeyFile = c.resolvePath(s.SSHKeyFile)
	}
	if config.OIDC != nil {
		c.resolveTLS(&config.OIDC.TLS)
	}
	for i := range config.ArgoCD {
		a := &config.ArgoCD[i]
		a.APIAlone = a.API != nil && !c.Doc.Has(fmt.Sprintf("argocd[%d].kubernetes", i))
		if a.Refresh == "" && a.API != nil {
			a.Refresh = RefreshAPI
		} else if a.Refresh == "" {
			a.Refresh = RefreshAnnotation
		}
		files := []*string{&a.Kubernetes.Kubeconfig, &a.Clusters.File}
		if a.API != nil {
			files = append(files, &a.API.CAFile)
		}
		for _, file := range files {
			if *file != "" {
				*file = c.resolvePath(*file)
			}
		}
	}
}

func (c *checker) checkAll(config *Config) {
	c.checkListeners(config)
	c.checkServer(config)
	c.checkStore(config)
	c.checkForges(config.Forges)
	c.checkAppHooks(config)
	c.checkRepositories(config)
	c.checkArgoCDs(config.ArgoCD)
	c.checkTokens(config.API.Tokens)
	c.checkSigning(config)
	c.checkOIDC(config)
	c.checkAccess(config)
	c.checkFloors(config.Floor)
	c.checkFreezes(config.Freezes)
	c.checkPrometheus(config.Prometheus)
	c.checkRegistries(config.Registries)
	c.checkSources(config.Sources)
	c.checkCharts(config.Charts)
	c.checkEndpoints(config.Endpoints)
	c.checkChannels(config.Channels)
}

func (c *checker) checkServer(config *Config) {
	if config.DataDir == "" {
		c.Errorf("dataDir", "the path of a folder is missing")
	}
	c.checkInterval("sweepInterval", config.SweepInterval)
}

func (c *checker) checkStore(config *Config) {
	at := "store"
	if c.Doc.Has("storeFile") {
		at = "storeFile"
		if config.Store == "" {
			return // why the file gave none has been said
		}
	}
	dsn := config.Store.Reveal()
	if file, ok := strings.CutPrefix(dsn, "sqlite://"); ok {
		if file == "" || strings.HasSuffix(file, "/") {
			c.Errorf(at, "the path of a file is missing after sqlite://")
		} else if strings.ContainsAny(file, "?#") {
			c.Errorf(at, "sqlite:// takes only the path of a file")
		}
		return
	}
	if u, err := url.Parse(dsn); err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" || u.Host == "" {
		// The cause would show the URL, which may hold a password.
		c.Errorf(at, "must be sqlite:// with the path of a file, or postgres:// with a host and a database")
	}
}

func (c *checker) checkRepositories(config *Config) {
	c.NotEmpty("repositories", len(config.Repositories), "repository")
	first := map[string]int{}
	for i, r := range config.Repositories {
		at := fmt.Sprintf("repositories[%d]", i)
		if config.ForgeByName(r.Forge) == nil {
			var names []string
			for _, f := range config.Forges {
				names = append(names, f.Name)
			}
			c.Errorf(at+".forge", "there is no forge %q%s", r.Forge, strictyaml.DidYouMean(r.Forge, names))
		}
		c.checkRepositoryName(at+".name", r.Name, config.ForgeByName(r.Forge))
		// Forges compare names without regard to case.
		key := r.Forge + "\x00" + strings.ToLower(r.Name)
		if j, duplicate := first[key]; duplicate {
			c.Errorf(at+".name", "%s is already repositories[%d]", r.Name, j)
		} else {
			first[key] = i
		}
		if !validBranch(r.Branch) {
			c.Errorf(at+".branch", "%q is not a branch's name", r.Branch)
		}
		of := config.ForgeByName(r.Forge)
		if of != nil && of.Auth.App != nil {
			c.checkAppRepository(at, &r, of.Auth.App)
		}
		if r.ManageWebhooks && config.Webhooks.ExternalURL == "" {
			c.Errorf(at+".manageWebhooks", "needs externalURL, the address that the forge sends events to")
		}
		c.checkInterval(at+".pollInterval", r.PollInterval)
		c.checkInterval(at+".discoverInterval", r.DiscoverInterval)
	}
}

// checkRepositoryName checks a repository's name: GitLab's groups may be in others.
func (c *checker) checkRepositoryName(at, name string, of *Forge) {
	form, pattern := "owner/name", ownerNamePattern
	if of != nil && of.Type == GitLab {
		form, pattern = "group/project or group/subgroup/project", projectPattern
	}
	onlyDots := func(part string) bool { return strings.Trim(part, ".") == "" }
	if !pattern.MatchString(name) || slices.ContainsFunc(strings.Split(name, "/"), onlyDots) {
		c.Errorf(at, "%q is not a repository; write it as %s", name, form)
	}
}

// validBranch follows git check-ref-format, without the exotic characters.
func validBranch(name string) bool {
	if !branchPattern.MatchString(name) || strings.HasSuffix(name, "/") || strings.HasSuffix(name, ".") {
		return false
	}
	if strings.Contains(name, "..") || strings.Contains(name, "//") || strings.Contains(name, "/.") {
		return false
	}
	return !slices.ContainsFunc(strings.Split(name, "/"), func(part string) bool { return strings.HasSuffix(part, ".lock") })
}

// argoCDVersion is what Argo CD calls its versions, and what its lines are called.
var argoCDVersion = regexp.MustCompile(`^v?[1-9][0-9]{0,3}\.[0-9]{1,4}(\.[0-9]{1,4}(\+[0-9A-Za-z.-]{1,64})?)?$`)

func (c *checker) checkArgoCDs(instances []ArgoCD) {
	c.NotEmpty("argocd", len(instances), "Argo CD")
	first := map[string]int{}
	for i, a := range instances {
		at := fmt.Sprintf("argocd[%d]", i)
		c.checkUniqueName("argocd", i, a.Name, first)
		c.checkRefresh(at+".refresh", &a)
		if c.OneOf(at+".render", a.Render, RenderLocal, RenderArgoCD); a.Render == RenderArgoCD && a.API == nil {
			c.Errorf(at+".render", "needs api, by which Argo CD is asked for manifests")
		}
		c.OneOf(at+".globbing", a.Globbing, GlobbingGit, GlobbingDoublestar)
		if c.Doc.Has(at + ".applicationSetPolicy") {
			c.OneOf(at+".applicationSetPolicy", a.ApplicationSetPolicy, "sync", "create-only", "create-update", "create-delete")
		} else if a.ApplicationSetPolicyOverride {
			c.Errorf(at+".applicationSetPolicyOverride", "needs applicationSetPolicy: without one each ApplicationSet's own policy "+
				"counts anyway")
		}
		if (a.Version != "" || c.Doc.Has(at+".version")) && !argoCDVersion.MatchString(a.Version) {
			c.Errorf(at+".version", "%q is no version of Argo CD; v3.5.7 is one, and 3.5 names its line", a.Version)
		}
		if a.Clusters.File == "" && c.Doc.Has(at+".clusters.file") {
			c.Errorf(at+".clusters.file", "the path of a file is missing")
		}
		c.checkClusterAlias(at+".clusters.alias", &a.Clusters)
		c.checkArgoCDAPI(at, a.API, a.APIAlone)
		c.NotEmpty(at+".kubernetes.namespaces", len(a.Kubernetes.Namespaces), "namespace")
		for j, n := range a.Kubernetes.Namespaces {
			path := fmt.Sprintf("%s.kubernetes.namespaces[%d]", at, j)
			if len(n) > maxNameLength || !namespacePattern.MatchString(n) {
				c.Errorf(path, "%q is not a namespace's name", n)
			} else if slices.Index(a.Kubernetes.Namespaces, n) < j {
				c.Errorf(path, "%q is given twice", n)
			}
		}
	}
}

// checkRefresh checks that the file has the means by which a refresh is requested.
func (c *checker) checkRefresh(at string, a *ArgoCD) {
	c.OneOf(at, a.Refresh, RefreshAnnotation, RefreshAPI, RefreshOff)
	switch {
	case a.Refresh == RefreshAPI && a.API == nil:
		c.Errorf(at, "needs api, the address and the token of Argo CD's own")
	case a.Refresh == RefreshAnnotation && a.APIAlone:
		c.Errorf(at, "needs kubernetes; without it, use api or off")
	}
}

func (c *checker) checkArgoCDAPI(at string, a *ArgoCDAPI, alone bool) {
	if a == nil {
		return
	}
	at += ".api"
	c.checkHTTPURL(at+".url", a.URL)
	switch {
	case !c.Doc.Has(at+".token") && !c.Doc.Has(at+".tokenFile"):
		c.Errorf(at, "token or tokenFile is missing: of an account with apiKey, or of a project's role")
	case a.Token == "" && c.Doc.Has(at+".token"):
		c.Errorf(at+".token", "the token is empty")
	case strings.ContainsFunc(a.Token.Reveal(), isUnprintable):
		c.Errorf(at+".token", "the token holds a space or a character that can't be sent")
	}
	switch {
	case a.CAFile == "" && c.Doc.Has(at+".caFile"):
		c.Errorf(at+".caFile", "the path of a file is missing")
	case a.CAFile != "" && a.Insecure:
		c.Errorf(at+".insecure", "caFile is given too, which says whose certificates are believed; keep one of them")
	}
	switch {
	case a.Namespace != "" && !alone:
		c.Errorf(at+".namespace", "kubernetes is given too, whose first namespace is Argo CD's own")
	case a.Namespace != "" && (len(a.Namespace) > maxNameLength || !namespacePattern.MatchString(a.Namespace)):
		c.Errorf(at+".namespace", "%q is not a namespace's name", a.Namespace)
	case len(a.Projects) > 0 && !alone:
		c.Errorf(at+".projects", "kubernetes is given too, by which Applications are watched")
	}
	for j, p := range a.Projects {
		if p == "" || strings.ContainsFunc(p, isUnprintable) {
			c.Errorf(fmt.Sprintf("%s.projects[%d]", at, j), "%q is not a project's name", p)
		}
	}
}

func (c *checker) checkTokens(tokens []Token) {
	first := map[string]int{}
	byToken := map[Secret]string{}
	for i, t := range tokens {
		at := fmt.Sprintf("api.tokens[%d]", i)
		c.checkUniqueName("api.tokens", i, t.Name, first)
		c.OneOf(at+".role", string(t.Role), string(Viewer), string(Operator), string(BreakGlass))
		switch {
		case t.Token == "" && c.Doc.Has(at+".tokenFile"):
			// Why the file gave none has been said.
		case t.Token == "" && !c.Doc.Has(at+".token"):
			c.Errorf(at, "token or tokenFile is missing")
		case len(t.Token) < minTokenLength:
			c.Errorf(at+".token", "the token is shorter than %d characters; make one with: openssl rand -hex 32", minTokenLength)
		case strings.ContainsFunc(t.Token.Reveal(), isUnprintable):
			c.Errorf(at+".token", "the token holds a space or a character that can't be sent")
		case byToken[t.Token] != "":
			c.Errorf(at+".token", "is the same as that of %q; whose it is could not be told", byToken[t.Token])
		default:
			byToken[t.Token] = t.Name
		}
	}
}

func (c *checker) checkFloors(floors []Floor) {
	for i, f := range floors {
		at := fmt.Sprintf("floor[%d]", i)
		c.checkEnvironmentGlobs(at+".environments", f.Environments)
		if f.Approvals == nil {
			c.Errorf(at, "approvals is missing: what these environments need at least")
			continue
		}
		for _, p := range policies.Problems((&policies.Gate{Approvals: f.Approvals}).Validate()) {
			c.Errorf(at+"."+p.Path, "%s", p.Message)
		}
	}
}

func (c *checker) checkEnvironmentGlobs(at string, globs []string) {
	c.NotEmpty(at, len(globs), "glob on environments' names")
	for j, glob := range globs {
		if glob == "" || !doublestar.ValidatePattern(glob) {
			c.Errorf(fmt.Sprintf("%s[%d]", at, j), "%q is not a valid glob", glob)
		}
	}
}

func (c *checker) checkChannels(channels []Channel) {
	first := map[string]int{}
	for i, n := range channels {
		at := fmt.Sprintf("channels[%d]", i)
		c.checkUniqueName("channels", i, n.Name, first)
		c.OneOf(at+".type", n.Type, ChannelWebhook, ChannelSlack, ChannelTeams)
		switch u, err := url.Parse(n.URL.Reveal()); {
		case n.URL == "" && c.Doc.Has(at+".urlFile"):
			// Why the file gave none has been said.
		case n.URL == "":
			c.Errorf(at, "url or urlFile is missing: where messages are posted")
		case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "":
			c.Errorf(at+".url", "is not an address that begins with https:// (or http://)") // it may be a secret: not shown
		}
		hasSecret := c.Doc.Has(at+".secret") || c.Doc.Has(at+".secretFile")
		switch {
		case n.Type != ChannelWebhook && hasSecret:
			c.Errorf(at, "a channel of the type %s has no secret: its address is one", n.Type)
		case n.Type == ChannelWebhook && !hasSecret:
			c.Errorf(at, "secret or secretFile is missing: what messages are signed with; make one with: echo whsec_$(openssl rand "+
				"-base64 32)")
		case n.Type == ChannelWebhook && n.Secret != "" && !isSigningSecret(n.Secret):
			c.Errorf(at+".secret", "is not whsec_ and a key of at least 24 bytes in base64; make one with: echo whsec_$(openssl rand "+
				"-base64 32)")
		}
	}
}

// isSigningSecret says whether a secret is one of Standard Webhooks.
func isSigningSecret(s Secret) bool {
	rest, ok := strings.CutPrefix(s.Reveal(), "whsec_")
	key, err := base64.StdEncoding.DecodeString(rest)
	return ok && err == nil && len(key) >= 24 && len(key) <= 64
}

func (c *checker) checkFreezes(freezes []Freeze) {
	for i := range freezes {
		at := fmt.Sprintf("freezes[%d]", i)
		c.checkEnvironmentGlobs(at+".environments", freezes[i].Environments)
		for _, p := range freezes[i].Gate().Problems() {
			c.Errorf(at+"."+p.Path, "%s", p.Message)
		}
	}
}
