package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Decimal returns a number with a number of decimals, "" if it is not known (NaN) or infinite.
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

// Percent returns a share as a percentage with a number of decimals, "" as [Decimal].
func Percent(share float64, decimals int) string {
	if text := Decimal(100*share, decimals); text != "" {
		return text + "%"
	}
	return ""
}

// OrDash returns a text, or a dash for an empty one, which shows in a table that a figure is not known.
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

// Brief returns a number with one decimal if it is below 10 and the decimal is not 0, with none otherwise.
func Brief(v float64) string {
	decimals := 0
	if math.Abs(v) < 9.95 {
		decimals = 1
	}
	return strings.TrimSuffix(Decimal(v, decimals), ".0")
}

// BriefPercent returns a share as a percentage in the form of [Brief].
func BriefPercent(share float64) string {
	if share > 0 && share < 0.0005 {
		return "less than 0.1%"
	}
	return Brief(100*share) + "%"
}

// More returns the difference of a ratio from 1 in per cent, such as "5.3% more", "" if that rounds
// to 0 or is not known. fewer is the word for a ratio below 1.
func More(ratio float64, decimals int, fewer string) string {
	percent := 100 * (ratio - 1)
	text := Percent(math.Abs(percent)/100, decimals)
	if text == "" || IsZero(strings.TrimSuffix(text, "%")) {
		return ""
	}
	return text + " " + MoreOr(percent, fewer)
}

// MoreOr returns "more", or fewer for a negative difference.
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
