package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Decimal returns a number with this many decimals, and nothing for one that is not known (NaN) or
// without bound.
func Decimal(v float64, decimals int) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return ""
	}
	text := strconv.FormatFloat(v, 'f', decimals, 64)
	if IsZero(text) {
		return strings.TrimPrefix(text, "-")
	}
	return text
}

// Percent returns a share as a percentage with this many decimals, likewise.
func Percent(share float64, decimals int) string {
	if text := Decimal(100*share, decimals); text != "" {
		return text + "%"
	}
	return ""
}

// OrDash returns a text, or a dash for none, so that a table shows that a figure is not known.
func OrDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// IsZero reports whether the text of a number is that of 0.
func IsZero(text string) bool {
	v, err := strconv.ParseFloat(text, 64)
	return err == nil && v == 0
}

// Brief returns a number with one decimal below 10, where it is not 0, and with none from there on.
func Brief(v float64) string {
	decimals := 0
	if math.Abs(v) < 9.95 {
		decimals = 1
	}
	return strings.TrimSuffix(Decimal(v, decimals), ".0")
}

// BriefPercent returns a share as a percentage, likewise.
func BriefPercent(share float64) string {
	if share > 0 && share < 0.0005 {
		return "less than 0.1%"
	}
	return Brief(100*share) + "%"
}

// More returns how much larger than 1 a ratio is, in per cent, such as "5.3% more"; "" where that
// rounds to nothing or is not known. fewer is the word for a smaller one.
func More(ratio float64, decimals int, fewer string) string {
	percent := 100 * (ratio - 1)
	text := Percent(math.Abs(percent)/100, decimals)
	if text == "" || IsZero(strings.TrimSuffix(text, "%")) {
		return ""
	}
	return text + " " + MoreOr(percent, fewer)
}

// MoreOr returns "more", or the word for it of a negative difference.
func MoreOr(difference float64, fewer string) string {
	if difference < 0 {
		return fewer
	}
	return "more"
}

// Count returns a number of things, such as "1 seed" and "2 seeds".
func Count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
