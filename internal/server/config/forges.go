package config

import (
	"fmt"
	"net/url"
	"strings"
)

func (c *checker) checkForges(forges []Forge) {
	c.NotEmpty("forges", len(forges), "forge")
	first := map[string]int{}
	for i, f := range forges {
		at := fmt.Sprintf("forges[%d]", i)
		c.checkUniqueName("forges", i, f.Name, first)
		c.OneOf(at+".type", f.Type, GitHub, Gitea, GitLab)
		if f.URL != "" || c.Doc.Has(at+".url") {
			c.checkHTTPURL(at+".url", f.URL)
			c.checkIsAPI(at+".url", &f)
		} else if f.Type == Gitea {
			c.Errorf(at, "url is missing: where this Gitea is, like https://gitea.example.com")
		}
		switch {
		case f.CAFile == "" && c.Doc.Has(at+".caFile"):
			c.Errorf(at+".caFile", "the path of a file is missing")
		case f.CAFile != "" && strings.HasPrefix(f.URL, "http://"):
			c.Errorf(at+".caFile", "url is http://, which shows no certificate: leave caFile out, or write https://")
		}
		if f.PublicLimits && f.Type == Gitea {
			c.Errorf(at+".publicLimits", "there is no public Gitea whose limits would be known; leave it out")
		}
		switch {
		case c.Doc.Has(at + ".auth.app"):
			c.checkApp(at+".auth", &f)
		case !c.Doc.Has(at+".auth.token") && !c.Doc.Has(at+".auth.tokenFile"):
			c.Errorf(at+".auth", "token or tokenFile is missing")
		case f.Auth.Token == "" && c.Doc.Has(at+".auth.token"):
			c.Errorf(at+".auth.token", "the token is empty")
		case strings.ContainsFunc(f.Auth.Token.Reveal(), isUnprintable):
			c.Errorf(at+".auth.token", "the token holds a space or a character that can't be sent")
		}
		c.checkHookSecrets(at, f)
		c.checkCallLimits(at+".limits", f)
	}
}

// checkIsAPI finds the address of GitHub's pages where that of its API belongs.
func (c *checker) checkIsAPI(at string, f *Forge) {
	u, err := url.Parse(f.URL)
	if err != nil || f.Type != GitHub {
		return
	}
	host := strings.ToLower(u.Hostname())
	switch {
	case host == "github.com" || host == "www.github.com":
		c.Errorf(at, "these are GitHub's pages; its API is at https://api.github.com, which is the default: leave url out")
	case strings.HasSuffix(host, ".ghe.com") && !strings.HasPrefix(host, "api."):
		c.Errorf(at, "these are GitHub's pages; the API is at https://api.%s", host)
	}
}

func (c *checker) checkCallLimits(at string, f Forge) {
	if f.Type != GitLab && c.Doc.Has(at) {
		c.Errorf(at, "only GitLab has limits that have to be written here; the others' are known")
	}
	for key, n := range map[string]*int{"newNotesPerMinute": f.Limits.NewNotes, "projectReadsPerMinute": f.Limits.ProjectReads} {
		if n != nil && *n < 0 {
			c.Errorf(at+"."+key, "is less than 0; 0 is no limit")
		}
	}
}

func (c *checker) checkHookSecrets(at string, f Forge) {
	if len(f.WebhookSecrets) == 0 {
		if !c.Doc.Has(at + ".webhookSecretsFile") {
			c.Errorf(at+".webhookSecrets", "at least one secret is needed; what isn't signed can't be believed")
		}
		return
	}
	for j, s := range f.WebhookSecrets {
		if len(s) < minWebhookSecretLength {
			c.Errorf(fmt.Sprintf("%s.webhookSecrets[%d]", at, j), "the secret is shorter than %d characters", minWebhookSecretLength)
		}
	}
}

func isUnprintable(r rune) bool { return r <= ' ' || r >= 0x7f }
