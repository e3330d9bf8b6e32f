package server

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"os"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/server/config"
)

// certificateInterval is how often the certificate's files are read, while there are connections.
const certificateInterval = 10 * time.Second

// certificateFiles is a certificate that is read again when its files change. While
// they don't fit each other, as in the middle of being replaced, the last good one
// stays.
type certificateFiles struct {
	files config.TLS
	now   func() time.Time
	log   *zap.Logger

	mu        sync.Mutex
	checkedAt time.Time
	cert, key []byte // as they were read
	current   *tls.Certificate
	broken    string // why the files can't be used; empty: they can
}

// loadCertificate reads the files for the first time.
func loadCertificate(files config.TLS, now func() time.Time, log *zap.Logger) (*certificateFiles, error) {
	c := &certificateFiles{files: files, now: now, log: log, checkedAt: now()}
	if err := c.reload(); err != nil {
		return nil, err
	}
	return c, nil
}

// reload reads the files, and takes the certificate where they have changed.
func (c *certificateFiles) reload() error {
	cert, err := os.ReadFile(c.files.CertFile)
	if err != nil {
		return fmt.Errorf("read the certificate: %w", err)
	}
	key, err := os.ReadFile(c.files.KeyFile)
	if err != nil {
		return fmt.Errorf("read the certificate's key: %w", err)
	}
	if bytes.Equal(cert, c.cert) && bytes.Equal(key, c.key) {
		return nil
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return fmt.Errorf("use the certificate %s: %w", c.files.CertFile, err)
	}
	c.cert, c.key, c.current = cert, key, &pair
	return nil
}

// certificate is for tls.Config's GetCertificate.
func (c *certificateFiles) certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.now(); now.Sub(c.checkedAt) >= certificateInterval {
		c.checkedAt = now
		err := c.reload()
		switch {
		case err == nil:
			c.broken = ""
		case err.Error() != c.broken: // said once
			c.broken = err.Error()
			c.log.Error("the certificate's files can't be used; the last good certificate stays", zap.Error(err))
		}
	}
	return c.current, nil
}

// tlsConfig is a listener's.
func (c *certificateFiles) tlsConfig() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: c.certificate}
}
