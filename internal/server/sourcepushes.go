package server

import (
	"net/url"
	"strings"

	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
	"github.com/liftlock/liftlock/webhooks"
)

// addSourceKeys adds to a delivery what a push to repositories under sources wakes, in every repository of ours. That
// somebody pushed is all that is taken from it: the sources are fetched again, and read.
func (s *Server) addSourceKeys(d *store.Delivery, ev *webhooks.Event) error {
	if ev.Kind != webhooks.Push || ev.Repo == "" {
		return nil
	}
	for i := range s.o.Config.Sources {
		source := s.o.Config.Sources[i].URL
		if !isRepositoryAt(source, ev.Repo) {
			continue
		}
		pushed, err := branch.PushedSources.Encode(record.Named(source), ev.Delivery)
		if err != nil {
			return err
		}
		d.Records = append(d.Records, pushed)
		for k := range s.o.Config.Repositories {
			r := &s.o.Config.Repositories[k]
			d.Keys = append(d.Keys, wake.ForSource(r.Forge+":"+r.Name, source).String())
		}
	}
	return nil
}

// isRepositoryAt says that an address may be that of a repository, whatever its host is called and
// whatever comes before its name. One of the same name in another place only has its readers look
// once more.
func isRepositoryAt(address, name string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	at := "/" + strings.ToLower(strings.TrimSuffix(strings.Trim(u.Path, "/"), ".git"))
	return strings.HasSuffix(at, "/"+strings.ToLower(name))
}
