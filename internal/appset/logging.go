package appset

import (
	"io"
	"strings"
	"sync"

	"github.com/sirupsen/logrus"
	"go.uber.org/zap"
)

// maxLibraryLine bounds what is kept of one log line of the library.
const maxLibraryLine = 300

// The library writes to the process-wide logrus logger, whole
// ApplicationSets and parameters included, and offers no other. Its errors
// come back as errors as well, so the first resolver sends what is left to
// its own logger: the message's first line, without any field.
var redirectLogsOnce sync.Once

func redirectLibraryLogs(log *zap.Logger) {
	redirectLogsOnce.Do(func() {
		logrus.SetOutput(io.Discard)
		logrus.SetFormatter(noopFormatter{})
		logrus.SetLevel(logrus.WarnLevel)
		logrus.AddHook(zapHook{log})
	})
}

// noopFormatter saves rendering fields that nobody reads.
type noopFormatter struct{}

func (noopFormatter) Format(*logrus.Entry) ([]byte, error) { return nil, nil }

type zapHook struct{ log *zap.Logger }

func (zapHook) Levels() []logrus.Level {
	return []logrus.Level{logrus.PanicLevel, logrus.FatalLevel, logrus.ErrorLevel, logrus.WarnLevel}
}

func (z zapHook) Fire(e *logrus.Entry) error {
	line, _, _ := strings.Cut(e.Message, "\n")
	if len(line) > maxLibraryLine {
		line = line[:maxLibraryLine]
	}
	z.log.Debug("Argo CD library", zap.String("message", line))
	return nil
}
