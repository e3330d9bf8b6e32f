package render

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/pem"
	"fmt"
	"maps"
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
func (d *deterministicRandom) startFile(name string) { *d = deterministicRandom{file: name} }

// makeBytes are n made-up bytes.
func (d *deterministicRandom) makeBytes(n int) []byte {
	d.draws++
	out := make([]byte, 0, n+sha256.Size)
	for block := uint64(0); len(out) < n; block++ {
		seed := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64([]byte(d.file+"\x00"), d.draws), block)
		sum := sha256.Sum256(seed)
		out = append(out, sum[:]...)
	}
	return out[:n]
}

// makeText makes n characters of an alphabet.
func (d *deterministicRandom) makeText(alphabet string, n int) string {
	var b strings.Builder
	for _, c := range d.makeBytes(n) {
		b.WriteByte(alphabet[int(c)%len(alphabet)])
	}
	return b.String()
}

// certificate has the fields of Sprig's.
type certificate struct{ Cert, Key string }

func (d *deterministicRandom) makePEM(kind string) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: d.makeBytes(256)}))
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
	makeCertificate := func(key string) certificate {
		e.nondeterministic = true
		made := certificate{Cert: e.random.makePEM("CERTIFICATE"), Key: e.random.makePEM("RSA PRIVATE KEY")}
		made.Key = cmp.Or(key, made.Key)
		return made
	}
	hash := func() string {
		e.nondeterministic = true
		return "$2a$10$" + e.random.makeText("./"+letters+digits, 53)
	}
	f := template.FuncMap{
		"randAlphaNum": random(letters + digits),
		"randAlpha":    random(letters),
		"randNumeric":  random(digits),
		"randAscii":    random(" !\"#$%&'()*+,-./" + digits + ":;<=>?@" + letters[26:] + "[\\]^_`" + letters[:26] + "{|}~"),
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
		"bcrypt":  func(string) string { return hash() },
		"htpasswd": func(name, _ string) (string, error) {
			if strings.Contains(name, ":") {
				return "invalid username: " + name, nil
			}
			return name + ":" + hash(), nil
		},
		"encryptAES": func(_, plain string) string {
			e.nondeterministic = true
			return base64.StdEncoding.EncodeToString(e.random.makeBytes(16 + len(plain)/16*16 + 16))
		},
		"genPrivateKey": func(kind string) string {
			e.nondeterministic = true
			return e.random.makePEM(strings.ToUpper(kind) + " PRIVATE KEY")
		},
		"genCA":                    func(string, int) certificate { return makeCertificate("") },
		"genCAWithKey":             func(_ string, _ int, key string) certificate { return makeCertificate(key) },
		"genSelfSignedCert":        func(string, []any, []any, int) certificate { return makeCertificate("") },
		"genSelfSignedCertWithKey": func(_ string, _, _ []any, _ int, key string) certificate { return makeCertificate(key) },
		"genSignedCert":            func(string, []any, []any, int, certificate) certificate { return makeCertificate("") },
		"genSignedCertWithKey": func(_ string, _, _ []any, _ int, _ certificate, key string) certificate {
			return makeCertificate(key)
		},
		"buildCustomCert": e.buildCustomCertFunc(reflect.ValueOf(sprigs["buildCustomCert"])),
	}
	maps.Copy(f, e.clockFuncs(sprigs))
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
// the same place. Sprig takes the time that it is for anything that is no time.
func (e *engine) clockFuncs(sprigs template.FuncMap) template.FuncMap {
	now := func() time.Time {
		e.nondeterministic = true
		return time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC)
	}
	toTime := func(v any) time.Time {
		switch v := v.(type) {
		case time.Time:
			return v
		case *time.Time:
			if v != nil {
				return *v
			}
		case int64, int, int32:
			return time.Unix(reflect.ValueOf(v).Int(), 0)
		}
		return now()
	}
	dateInZone := func(layout string, v any, zone string) string {
		place, err := time.LoadLocation(zone)
		if err != nil || place == time.Local {
			place = time.UTC
		}
		return toTime(v).In(place).Format(layout)
	}
	toDate := func(layout, value string) (time.Time, error) { return time.ParseInLocation(layout, value, time.UTC) }
	durationRound := sprigs["durationRound"].(func(any) string)
	return template.FuncMap{
		"now":            now,
		"date":           func(layout string, v any) string { return dateInZone(layout, v, "UTC") },
		"htmlDate":       func(v any) string { return dateInZone(time.DateOnly, v, "UTC") },
		"htmlDateInZone": func(v any, zone string) string { return dateInZone(time.DateOnly, v, zone) },
		"dateInZone":     dateInZone,
		"date_in_zone":   dateInZone,
		"toDate":         func(layout, value string) time.Time { t, _ := toDate(layout, value); return t },
		"mustToDate":     toDate,
		"ago":            func(v any) string { return now().Sub(toTime(v)).Round(time.Second).String() },
		"durationRound": func(v any) string {
			if t, ok := v.(time.Time); ok {
				v = int64(now().Sub(t))
			}
			return durationRound(v)
		},
	}
}
