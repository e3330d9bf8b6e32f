package render

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/pem"
	"fmt"
	"reflect"
	"strings"
	"text/template"
	"time"
)

// deterministicRandom makes up what templates ask of chance: bytes that depend on the
// template's file and on how many it asked for before, and on nothing else.
type deterministicRandom struct {
	file  string
	draws uint64
}

// startFile says which file the next values are for.
func (s *deterministicRandom) startFile(name string) { *s = deterministicRandom{file: name} }

// makeBytes are n made-up bytes.
func (s *deterministicRandom) makeBytes(n int) []byte {
	s.draws++
	out := make([]byte, 0, n+sha256.Size)
	for block := uint64(0); len(out) < n; block++ {
		seed := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64([]byte(s.file+"\x00"), s.draws), block)
		sum := sha256.Sum256(seed)
		out = append(out, sum[:]...)
	}
	return out[:n]
}

// makeText makes n characters of an alphabet.
func (s *deterministicRandom) makeText(alphabet string, n int) string {
	var b strings.Builder
	for _, c := range s.makeBytes(n) {
		b.WriteByte(alphabet[int(c)%len(alphabet)])
	}
	return b.String()
}

// certificate has the fields of Sprig's.
type certificate struct{ Cert, Key string }

func (s *deterministicRandom) makePEM(kind string) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: s.makeBytes(256)}))
}

func (s *deterministicRandom) makeCertificate() certificate {
	return certificate{Cert: s.makePEM("CERTIFICATE"), Key: s.makePEM("RSA PRIVATE KEY")}
}

const (
	digits  = "0123456789"
	letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
)

// deterministicFuncs are the functions whose results depend on chance, on the clock, on
// the machine's time zone or on the order in which Go walks maps.
func (e *engine) deterministicFuncs(sprigs template.FuncMap) template.FuncMap {
	random := func(alphabet string) func(int) (string, error) {
		return func(n int) (string, error) {
			e.nondeterministic = true
			if err := checkTextSize("a random text", 1, n); err != nil || n < 0 {
				return "", err
			}
			return e.random.makeText(alphabet, n), nil
		}
	}
	makeCertificate := func() certificate {
		e.nondeterministic = true
		return e.random.makeCertificate()
	}
	f := template.FuncMap{
		"randAlphaNum": random(letters + digits),
		"randAlpha":    random(letters),
		"randNumeric":  random(digits),
		"randAscii":    random(printableASCII()),
		"randBytes": func(n int) (string, error) {
			e.nondeterministic = true
			if err := checkTextSize("randBytes", 2, n); err != nil || n < 0 {
				return "", err
			}
			return base64.StdEncoding.EncodeToString(e.random.makeBytes(n)), nil
		},
		"randInt": func(low, high int) (int, error) {
			e.nondeterministic = true
			if high <= low {
				return 0, fmt.Errorf("randInt: there is nothing between %d and %d", low, high)
			}
			return low + int(binary.BigEndian.Uint32(e.random.makeBytes(4)))%(high-low), nil
		},
		"uuidv4": func() string {
			e.nondeterministic = true
			u := e.random.makeBytes(16)
			u[6], u[8] = u[6]&0x0f|0x40, u[8]&0x3f|0x80
			return fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
		},
		"shuffle": func(s string) string { e.nondeterministic = true; return s },
		"bcrypt": func(string) string {
			e.nondeterministic = true
			return "$2a$10$" + e.random.makeText("./"+letters+digits, 53)
		},
		"htpasswd": func(name, _ string) (string, error) {
			e.nondeterministic = true
			if strings.Contains(name, ":") {
				return "invalid username: " + name, nil
			}
			return name + ":$2a$10$" + e.random.makeText("./"+letters+digits, 53), nil
		},
		"encryptAES": func(_, plain string) string {
			e.nondeterministic = true
			return base64.StdEncoding.EncodeToString(e.random.makeBytes(16 + len(plain)/16*16 + 16))
		},
		"genPrivateKey": func(kind string) string {
			e.nondeterministic = true
			return e.random.makePEM(strings.ToUpper(kind) + " PRIVATE KEY")
		},
		"genCA":             func(string, int) certificate { return makeCertificate() },
		"genCAWithKey":      func(_ string, _ int, key string) certificate { c := makeCertificate(); c.Key = key; return c },
		"genSelfSignedCert": func(string, []any, []any, int) certificate { return makeCertificate() },
		"genSelfSignedCertWithKey": func(_ string, _, _ []any, _ int, key string) certificate {
			c := makeCertificate()
			c.Key = key
			return c
		},
		"genSignedCert": func(string, []any, []any, int, certificate) certificate { return makeCertificate() },
		"genSignedCertWithKey": func(_ string, _, _ []any, _ int, _ certificate, key string) certificate {
			c := makeCertificate()
			c.Key = key
			return c
		},
		"buildCustomCert": e.buildCustomCertFunc(reflect.ValueOf(sprigs["buildCustomCert"])),
		"keys":            sortedKeys,
		"values":          sortedValues,
	}
	for name, fn := range e.clockFuncs(sprigs) {
		f[name] = fn
	}
	return f
}

// buildCustomCertFunc is Sprig's buildCustomCert, which checks what it is given;
// what a stand-in made up passes.
func (e *engine) buildCustomCertFunc(sprigs reflect.Value) func(cert, key string) (certificate, error) {
	return func(cert, key string) (certificate, error) {
		got := sprigs.Call([]reflect.Value{reflect.ValueOf(cert), reflect.ValueOf(key)})
		if err, failed := got[1].Interface().(error); failed && !e.nondeterministic {
			return certificate{}, err
		}
		c, err := base64.StdEncoding.DecodeString(cert)
		if err != nil {
			return certificate{}, fmt.Errorf("buildCustomCert: the certificate is not base64: %w", err)
		}
		k, err := base64.StdEncoding.DecodeString(key)
		if err != nil {
			return certificate{}, fmt.Errorf("buildCustomCert: the key is not base64: %w", err)
		}
		return certificate{Cert: string(c), Key: string(k)}, nil
	}
}

// clockFuncs are the functions of time, for which it is always the same moment in
// the same place.
func (e *engine) clockFuncs(sprigs template.FuncMap) template.FuncMap {
	moment := time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC)
	now := func() time.Time { e.nondeterministic = true; return moment }
	inZone := sprigs["dateInZone"].(func(string, any, string) string)
	since := sprigs["durationRound"].(func(any) string)
	// Sprig takes the time that it is for anything that is no time.
	known := func(v any) any {
		switch v := v.(type) {
		case time.Time, int64, int, int32:
			return v
		case *time.Time:
			if v != nil {
				return v
			}
		}
		return now()
	}
	dateInZone := func(layout string, v any, zone string) string {
		if strings.EqualFold(zone, "local") {
			zone = "UTC"
		}
		return inZone(layout, known(v), zone)
	}
	toDate := func(layout, value string) (time.Time, error) { return time.ParseInLocation(layout, value, time.UTC) }
	return template.FuncMap{
		"now":            now,
		"date":           func(layout string, v any) string { return dateInZone(layout, v, "UTC") },
		"htmlDate":       func(v any) string { return dateInZone(time.DateOnly, v, "UTC") },
		"htmlDateInZone": func(v any, zone string) string { return dateInZone(time.DateOnly, v, zone) },
		"dateInZone":     dateInZone,
		"date_in_zone":   dateInZone,
		"toDate":         func(layout, value string) time.Time { t, _ := toDate(layout, value); return t },
		"mustToDate":     toDate,
		"ago": func(v any) string {
			var t time.Time
			switch v := known(v).(type) {
			case time.Time:
				t = v
			case int64:
				t = time.Unix(v, 0)
			case int:
				t = time.Unix(int64(v), 0)
			default:
				t = now()
			}
			return now().Sub(t).Round(time.Second).String()
		},
		"durationRound": func(v any) string {
			if t, ok := v.(time.Time); ok {
				return since(int64(now().Sub(t)))
			}
			return since(v)
		},
	}
}

func printableASCII() string {
	var b strings.Builder
	for c := byte(' '); c <= '~'; c++ {
		b.WriteByte(c)
	}
	return b.String()
}
