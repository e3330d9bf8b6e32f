package doctor

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/argocd"
	"github.com/liftlock/liftlock/internal/server/config"
)

// fixedArgoCD is an Argo CD of which an inspection is known.
type fixedArgoCD struct{ argocd.Inspection }

func (f fixedArgoCD) Inspect(context.Context, time.Time) (*argocd.Inspection, error) {
	return &f.Inspection, nil
}

// TestArgoCD judges inspections that the emulated Argo CD doesn't give.
func TestArgoCD(t *testing.T) {
	now := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name   string
		change func(i *argocd.Inspection)
		want   []Code
	}{
		{"as it is wanted", func(*argocd.Inspection) {}, nil},
		{"a token that is good for long", func(i *argocd.Inspection) { i.TokenEnds = now.AddDate(0, 1, 0) }, nil},
		{"a token that ends soon", func(i *argocd.Inspection) { i.TokenEnds = now.AddDate(0, 0, 3) }, []Code{"argocd-token-ends"}},
		{"a token that has ended", func(i *argocd.Inspection) { i.TokenEnds = now.AddDate(0, 0, -3) }, []Code{"argocd-token-ended"}},
		{"health that isn't shown", func(i *argocd.Inspection) { i.HealthHidden = 7 }, []Code{"argocd-health-hidden"}},
		{"an old line", func(i *argocd.Inspection) { i.Line = "" }, []Code{"argocd-version-unknown"}},
		{"an unknown line", func(i *argocd.Inspection) { i.Line, i.LineErr = "", errors.New("no description") }, []Code{"argocd-version-unknown"}},
		{"nothing there, and no right to see it", func(i *argocd.Inspection) {
			i.Applications, i.Missing = 0, []argocd.MissingRight{{Rule: "a Role", Without: "nothing works", Required: true}}
		}, []Code{"argocd-forbidden"}},
	} {
		i := argocd.Inspection{Source: "https://kubernetes.example.com", Line: "3.5", Applications: 1}
		c.change(&i)
		d := &doctor{Options: Options{Now: func() time.Time { return now }, ArgoCDs: map[string]ArgoCD{"hub": fixedArgoCD{i}}}}
		found := d.checkArgoCD(context.Background(), &config.ArgoCD{Name: "hub"})
		if got := (&Report{Findings: found}).Codes(); !slices.Equal(got, c.want) {
			t.Errorf("%s: found %q, want %q", c.name, got, c.want)
		}
	}
}
