package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/liftlock/liftlock/internal/server"
)

func serveCommand() *cobra.Command {
	var file, level, format string
	var resetAdmin bool
	c := &cobra.Command{
		Use:   "serve",
		Short: "Run the server",
		Long: "Runs the server that the file describes, until SIGINT or SIGTERM.\nLogs go to standard error. The first start prints a password " +
			"for the console on standard output,\nwhere neither api.tokens nor oidc is configured.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := loadServerFile(file)
			if err != nil {
				return err
			}
			log, err := newLogger(level, format)
			if err != nil {
				return err
			}
			defer func() { _ = log.Sync() }() // standard error can't always be synced
			s, err := server.New(cmd.Context(), server.Options{Config: cfg, Log: log, Version: Version(),
				Announce: func(text string) { fmt.Fprintln(cmd.OutOrStdout(), text) }, ResetAdmin: resetAdmin})
			if errors.Is(err, context.Canceled) && cmd.Context().Err() != nil {
				return nil // told to end while it waited for its database
			}
			if err != nil {
				return err
			}
			return s.Run(cmd.Context())
		},
	}
	c.Flags().StringVar(&file, "config", "liftlock.yaml", "the server's file")
	c.Flags().BoolVar(&resetAdmin, "reset-admin-password", false, "generate another password for admin, where neither api.tokens nor oidc "+
		"is configured")
	c.Flags().StringVar(&level, "log-level", "info", "debug, info, warn or error")
	c.Flags().StringVar(&format, "log-format", "json", "json or console")
	return c
}

// newLogger writes to standard error.
func newLogger(level, format string) (*zap.Logger, error) {
	lvl, err := zapcore.ParseLevel(level)
	if err != nil {
		return nil, fmt.Errorf("--log-level: %w", err)
	}
	zc := zap.NewProductionConfig()
	switch format {
	case "json":
	case "console":
		zc.Encoding = "console"
		zc.EncoderConfig = zap.NewDevelopmentEncoderConfig()
	default:
		return nil, fmt.Errorf("--log-format: %q is neither json nor console", format)
	}
	zc.Level = zap.NewAtomicLevelAt(lvl)
	zc.Sampling = nil // what happened to a release must not be sampled away
	zc.EncoderConfig.EncodeTime = zapcore.RFC3339NanoTimeEncoder
	return zc.Build(zap.AddStacktrace(zapcore.FatalLevel))
}
