package doctor

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/server/config"
)

// fixedLogin is a provider of which it is known what it calls itself.
type fixedLogin struct {
	issuer string
	err    error
}

func (f fixedLogin) Discover(context.Context) (string, error) { return f.issuer, f.err }

func TestCheckLogin(t *testing.T) {
	for _, c := range []struct {
		login fixedLogin
		want  []Code
	}{
		{fixedLogin{issuer: "https://dex.example.com"}, nil},
		{fixedLogin{issuer: "https://dex.example.com/"}, []Code{"login-issuer"}},
		{fixedLogin{err: errors.New("away")}, []Code{"login-unreachable"}},
	} {
		d := &doctor{Options: Options{Config: &config.Config{OIDC: &config.OIDC{Issuer: "https://dex.example.com"}}, Login: c.login, Timeout: time.Minute}}
		if got := (&Report{Findings: d.checkLogin(context.Background())}).Codes(); !slices.Equal(got, c.want) {
			t.Errorf("%+v: found %q, want %q", c.login, got, c.want)
		}
	}
}
