package server

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/liftlock/liftlock/internal/controller/gateclient"
	"github.com/liftlock/liftlock/internal/server/config"
)

// newGateMetrics makes what asks the Prometheus servers of the server's file.
func (s *Server) newGateMetrics() (*gateclient.Metrics, error) {
	var all []gateclient.Prometheus
	for i := range s.o.Config.Prometheus {
		p := &s.o.Config.Prometheus[i]
		known, err := readCallTLS(&p.TLS)
		if err != nil {
			return nil, fmt.Errorf("the Prometheus %s: %w", p.Name, err)
		}
		all = append(all, gateclient.Prometheus{Name: p.Name, URL: p.URL, BearerToken: p.BearerToken.Reveal(), Username: p.Username,
			Password: p.Password.Reveal(), TLS: known})
	}
	m, err := gateclient.NewMetrics(all, s.o.Clock.Now, &s.caches)
	if err == nil {
		m.OnCall = s.metrics.gateCall
	}
	return m, err
}

// newGateEndpoints makes what asks the endpoints of the server's file.
func (s *Server) newGateEndpoints() (*gateclient.Endpoints, error) {
	var all []gateclient.Endpoint
	for i := range s.o.Config.Endpoints {
		p := &s.o.Config.Endpoints[i]
		known, err := readCallTLS(&p.TLS)
		if err != nil {
			return nil, fmt.Errorf("the endpoint %s: %w", p.Name, err)
		}
		all = append(all, gateclient.Endpoint{Name: p.Name, URL: p.URL, Secret: p.Secret.Reveal(), Authorization: p.Authorization.Reveal(),
			TLS: known})
	}
	e, err := gateclient.NewEndpoints(all, s.o.Config.ExternalURL, s.o.Clock.Now, &s.caches)
	if err == nil {
		e.OnCall = s.metrics.gateCall
	}
	return e, err
}

// readCallTLS reads the certificates that the server's file names.
func readCallTLS(t *config.CallTLS) (gateclient.TLS, error) {
	out := gateclient.TLS{Insecure: t.Insecure}
	var err error
	if t.CAFile != "" {
		if out.CA, err = readPEM(t.CAFile); err != nil {
			return out, fmt.Errorf("read caFile: %w", err)
		}
	}
	if t.CertFile == "" {
		return out, nil
	}
	cert, err := readPEM(t.CertFile)
	if err != nil {
		return out, fmt.Errorf("read certFile: %w", err)
	}
	key, err := readPEM(t.KeyFile)
	if err != nil {
		return out, fmt.Errorf("read keyFile: %w", err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return out, fmt.Errorf("certFile and keyFile can't be used: %w", err)
	}
	out.Client = &pair
	return out, nil
}

// readAuthorities reads a file of authorities, in PEM, that are believed besides the
// system's; nil without a file.
func readAuthorities(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	pem, err := readPEM(file)
	if err != nil {
		return nil, err
	}
	known, err := x509.SystemCertPool()
	if err != nil {
		known = x509.NewCertPool()
	}
	if !known.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("there is no certificate in %s", file)
	}
	return known, nil
}

// maxCAFile bounds a file of certificates; the system's own bundle has 250 kB.
const maxCAFile = 4 << 20

// readPEM reads a file of certificates or of a key.
func readPEM(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		if at := (*fs.PathError)(nil); errors.As(err, &at) {
			err = fmt.Errorf("%s: %w", file, at.Err)
		}
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxCAFile))
}
