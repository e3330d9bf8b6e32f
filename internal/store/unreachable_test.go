package store

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/liftlock/liftlock/internal/world/storetest"
)

// TestUnreachable says which failures waiting may mend.
func TestUnreachable(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	for name, c := range map[string]struct {
		err  error
		away bool
	}{
		"refused":                    {refused, true},
		"no such host yet":           {&net.OpError{Op: "dial", Err: &net.DNSError{IsNotFound: true}}, true},
		"no answer":                  {fmt.Errorf("dial: %w", context.DeadlineExceeded), true},
		"the connection ended":       {io.ErrUnexpectedEOF, true},
		"starting":                   {&pgconn.PgError{Code: "57P03"}, true},
		"shutting down":              {&pgconn.PgError{Code: "57P01"}, true},
		"no connection is free":      {&pgconn.PgError{Code: "53300"}, true},
		"connection failure":         {&pgconn.PgError{Code: "08006"}, true},
		"refused, then starting":     {errors.Join(refused, &pgconn.PgError{Code: "57P03"}), true},
		"wrong password":             {&pgconn.PgError{Code: "28P01"}, false},
		"refused, then a wrong user": {errors.Join(refused, &pgconn.PgError{Code: "28000"}), false},
		"no such database":           {&pgconn.PgError{Code: "3D000"}, false},
		"no right to make tables":    {&pgconn.PgError{Code: "42501"}, false},
		"a certificate of who knows": {&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}, false},
		"another host's certificate": {fmt.Errorf("tls: %w", x509.HostnameError{Host: "db"}), false},
		"it wants a certificate":     {&net.OpError{Op: "remote error", Err: errors.New("tls: certificate required")}, false},
		"newer tables":               {ErrNewer, false},
		"told to stop":               {context.Canceled, false},
		"refused, and told to stop":  {errors.Join(refused, context.Canceled), false},
	} {
		if got := isUnreachable(c.err); got != c.away {
			t.Errorf("%s: away: %t", name, got)
		}
		if got := errors.Is(withReach(c.err), ErrUnreachable); got != c.away {
			t.Errorf("%s: the error's kind says away: %t", name, got)
		}
	}
}

// TestOpenUnreachable gives the kind for a real address without a listener, and not for an address
// that isn't one.
func TestOpenUnreachable(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	if _, err := Open(t.Context(), "postgres://liftlock@"+address+"/liftlock?sslmode=disable", Options{}); !errors.Is(err, ErrUnreachable) {
		t.Errorf("got %v", err)
	}
	if _, err := Open(t.Context(), "postgres://liftlock@"+address+"/liftlock?sslmode=nonsense", Options{}); err == nil || errors.Is(err, ErrUnreachable) {
		t.Errorf("an address that is none: %v", err)
	}
}

// TestOpenMissingDatabase ends at once where PostgreSQL is there and the database isn't.
func TestOpenMissingDatabase(t *testing.T) {
	u, err := url.Parse(storetest.PostgresSchema(t))
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/no_such_database"
	if _, err := Open(t.Context(), u.String(), Options{}); err == nil || errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), "no_such_database") {
		t.Errorf("got %v", err)
	}
}
