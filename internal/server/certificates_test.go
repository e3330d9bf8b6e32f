package server

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// writeCertificate writes a certificate for 127.0.0.1 with a serial number, and returns it.
func writeCertificate(t *testing.T, dir string, serial int64) (certFile, keyFile string, cert *x509.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "liftlock.example"}, DNSNames: []string{"liftlock.example"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	rawKey, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	if cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	certFile, keyFile = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	for file, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: der}, keyFile: {Type: "PRIVATE KEY", Bytes: rawKey}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certFile, keyFile, cert
}

func TestForgesAuthority(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	certFile, keyFile, cert := writeCertificate(t, dir, 1)
	known, err := readAuthorities(certFile)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cert.Verify(x509.VerifyOptions{Roots: known, DNSName: "liftlock.example"}); err != nil {
		t.Errorf("its own authority isn't believed: %v", err)
	}
	if known, err := readAuthorities(""); known != nil || err != nil {
		t.Errorf("without a file: %v, %v", known, err)
	}
	s := newTestServer(t, "")
	for file, says := range map[string]string{keyFile: "no certificate in", filepath.Join(dir, "none.pem"): "no such file"} {
		f := s.o.Config.Forges[0]
		f.CAFile = file
		if _, err := s.newForge(f); err == nil || !strings.Contains(err.Error(), "caFile: ") || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: %v", file, err)
		}
	}
	if hint := connectHint(fmt.Errorf("ask: %w", x509.UnknownAuthorityError{Cert: cert})); !strings.Contains(hint, "forges[].caFile") {
		t.Errorf("the hint for an unknown authority: %s", hint)
	}
}

func TestCertificateIsReadAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	certFile, keyFile, _ := writeCertificate(t, dir, 1)
	core, logs := observer.New(zap.ErrorLevel)
	now := time.Now()
	files := newTestServer(t, "").o.Config.TLS
	files.CertFile, files.KeyFile = certFile, keyFile
	c, err := loadCertificate(files, func() time.Time { return now }, zap.New(core))
	if err != nil {
		t.Fatal(err)
	}
	serial := func() int64 {
		t.Helper()
		pair, err := c.certificate(nil)
		if err != nil {
			t.Fatal(err)
		}
		return pair.Leaf.SerialNumber.Int64()
	}
	writeCertificate(t, dir, 2)
	if got := serial(); got != 1 {
		t.Errorf("at once it is certificate %d", got)
	}
	now = now.Add(certificateInterval)
	if got := serial(); got != 2 {
		t.Errorf("after a while it is certificate %d", got)
	}
	// Half of a change, and files that are gone: the last good one stays, said once.
	oldKey, err := os.ReadFile(keyFile)
	if err != nil {
		t.Fatal(err)
	}
	writeCertificate(t, dir, 3)
	newKey, err := os.ReadFile(keyFile)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(keyFile, oldKey, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		now = now.Add(certificateInterval)
		if got := serial(); got != 2 {
			t.Errorf("with another one's key it is certificate %d", got)
		}
	}
	if logs.Len() != 1 {
		t.Errorf("it is said %d times", logs.Len())
	}
	if err := os.WriteFile(keyFile, newKey, 0o600); err != nil {
		t.Fatal(err)
	}
	now = now.Add(certificateInterval)
	if got := serial(); got != 3 {
		t.Errorf("once they fit it is certificate %d", got)
	}
	if err := os.Remove(certFile); err != nil {
		t.Fatal(err)
	}
	now = now.Add(certificateInterval)
	if got := serial(); got != 3 || logs.Len() != 2 {
		t.Errorf("without files it is certificate %d, said %d times", got, logs.Len())
	}
}

// TestTLS goes through a real listener.
func TestTLS(t *testing.T) {
	t.Parallel()
	certFile, keyFile, cert := writeCertificate(t, t.TempDir(), 1)
	s := newTestServer(t, "tls: {certFile: "+certFile+", keyFile: "+keyFile+"}\nhosts: [liftlock.example]\nwebhooks: {listen: \"127.0.0.1:0\"}\n")
	handlers, err := s.buildHandlers()
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, len(handlers))
	for l, h := range handlers {
		l.setHandler(context.Background(), h, zap.NewNop())
		go func() { done <- l.serve() }()
	}
	roots := x509.NewCertPool()
	roots.AddCert(cert)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "liftlock.example"}, ForceAttemptHTTP2: true}}
	for _, url := range []string{s.URL(), s.WebhooksURL()} {
		res, err := client.Get(url + "/healthz")
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close() // its status is enough
		if res.StatusCode != http.StatusOK || res.Header.Get("Strict-Transport-Security") == "" || res.ProtoMajor != 2 {
			t.Errorf("%s is answered with %s %d, %v", url, res.Proto, res.StatusCode, res.Header)
		}
	}
	if res, err := http.Get("http" + s.URL()[len("https"):] + "/healthz"); err != nil || res.StatusCode != http.StatusBadRequest {
		t.Errorf("plain HTTP is answered with %v, %v", res, err)
	} else {
		_ = res.Body.Close() // its status is enough
	}
	client.CloseIdleConnections()
	for l := range handlers {
		l.stop()
	}
	for range handlers {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
