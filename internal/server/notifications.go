package server

import (
	"context"

	"github.com/liftlock/liftlock/internal/notify"
)

// newNotifier makes what tells the channels of the server's file.
func (s *Server) newNotifier() (*notify.Notifier, error) {
	owner, err := ownerName()
	if err != nil {
		return nil, err
	}
	var channels []notify.Channel
	for _, c := range s.o.Config.Channels {
		channels = append(channels, notify.Channel{Name: c.Name, Type: c.Type, URL: c.URL.Reveal(), Secret: c.Secret.Reveal()})
	}
	return notify.New(notify.Options{Store: s.store, Channels: channels, Console: s.o.Config.ExternalURL, Owner: owner, Clock: s.o.Clock,
		Log: s.log.Named("notify"), OnSent: s.metrics.notified,
		Routes: func(ctx context.Context, repo, name string) (map[string][]string, bool) {
			e := s.runningEngine()
			if e == nil {
				return nil, false
			}
			return e.NotificationRoutes(ctx, repo, name)
		},
		PullURL: func(ctx context.Context, repo string, number int) string {
			e := s.runningEngine()
			if e == nil {
				return ""
			}
			return e.PullURL(ctx, repo, number)
		}})
}
