// Package build has what the commands of a release share: the date of everything, and how a binary was built.
package build

import (
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"time"
)

// Date returns the date of everything that a release consists of: that of the commit, in SOURCE_DATE_EPOCH.
func Date() (time.Time, error) {
	text := os.Getenv("SOURCE_DATE_EPOCH")
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil || seconds <= 0 {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH=%q: must be the time of the commit in seconds, as of git log -1 --format=%%ct", text)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

// Settings returns what a binary was built with, such as GOOS.
func Settings(info *debug.BuildInfo) map[string]string {
	settings := make(map[string]string, len(info.Settings))
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	return settings
}
