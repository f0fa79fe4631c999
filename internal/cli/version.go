package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func newVersionCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "version",
		Short: "Print the version, the commit it was built from and the version of Go",
		Example: `  foresail version
  foresail version --output json`,
		Args: NoArguments,
	}
	output := AddOutputFlag(c, "text", "json")
	c.RunE = func(c *cobra.Command, _ []string) error {
		info, ok := debug.ReadBuildInfo()
		if !ok {
			return fmt.Errorf("this binary carries no build information: it must be built with Go modules")
		}
		return printVersion(c.OutOrStdout(), versionOf(info), output.value)
	}
	return c
}

// release is set by release builds, which have no Git history to take it from.
var release string

// version describes a build. What the build does not know is empty.
type version struct {
	Version    string `json:"version"`
	Commit     string `json:"commit"`
	CommitTime string `json:"commitTime"`
	Modified   bool   `json:"modified"` // built from a tree with uncommitted changes
	Go         string `json:"go"`
	Platform   string `json:"platform"`
}

func versionOf(info *debug.BuildInfo) version {
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	return version{
		Version:    cmp.Or(release, info.Main.Version),
		Commit:     settings["vcs.revision"],
		CommitTime: settings["vcs.time"],
		Modified:   settings["vcs.modified"] == "true",
		Go:         info.GoVersion,
		Platform:   settings["GOOS"] + "/" + settings["GOARCH"],
	}
}

// BuildVersion is how this build names itself to others.
func BuildVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return versionOf(info).Version
}

// UserAgent is how this build names itself in requests.
func UserAgent() string { return "foresail/" + BuildVersion() }

func printVersion(w io.Writer, v version, format string) error {
	if format == "json" {
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		return encoder.Encode(v)
	}
	commit := v.Commit
	switch {
	case commit == "":
		commit = "unknown"
	case v.Modified:
		commit += ", with changes that are not committed"
	}
	_, err := fmt.Fprintf(w, "foresail %s\ncommit   %s\ngo       %s %s\n", v.Version, commit, v.Go, v.Platform)
	return err
}
