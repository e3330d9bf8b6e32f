package store_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/liftlock/liftlock/internal/store"
)

// A delivery wakes a key; a run of the key stores what it found together with
// its own end.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "liftlock")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	s, err := store.Open(ctx, "sqlite://"+filepath.Join(dir, "liftlock.db"), store.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()

	for range 2 { // the forge delivers it again
		fresh, err := s.Accept(ctx, store.Delivery{
			Forge: "hub", ID: "72d3162e", Event: "push", Repo: "acme/fleet",
			ReceivedAt: time.Now(), Keys: []string{"repo:acme/fleet"},
		})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("fresh:", fresh)
	}

	claims, err := s.Claim(ctx, "this process", 10)
	if err != nil {
		log.Fatal(err)
	}
	for _, c := range claims {
		err := s.Tx(ctx, "run", func(tx *store.Tx) error {
			if _, err := tx.AddEvents(ctx, store.Event{Repo: "acme/fleet", Kind: "fetched", Message: "2 new commits"}); err != nil {
				return err
			}
			if err := tx.Wake(ctx, "unit:shop/web"); err != nil {
				return err
			}
			return tx.Finish(ctx, "this process", c, store.Outcome{Next: time.Now().Add(3 * time.Minute)})
		})
		fmt.Println("ran", c.Key, err)
	}
	depth, err := s.Depth(ctx)
	fmt.Println("due:", depth.Due, "later:", depth.Later, err)
	// Output:
	// fresh: true
	// fresh: false
	// ran repo:acme/fleet <nil>
	// due: 1 later: 1 <nil>
}
