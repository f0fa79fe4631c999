package explain

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxNames bounds the names in a line.
const maxNames = 10

// fewOf returns the first names of a list.
func fewOf(names []string) string {
	text := strings.Join(names[:min(maxNames, len(names))], ", ")
	if more := len(names) - maxNames; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// join joins the parts that are not empty.
func join(separator string, parts ...string) string {
	var out []string
	for _, p := range parts {
		if p != "" {
			out = append(out, p)
		}
	}
	return strings.Join(out, separator)
}

func known(n *int32) string {
	if n == nil {
		return "unknown"
	}
	return fmt.Sprint(*n)
}

func limit(n int32) string {
	if n == 0 {
		return "any number"
	}
	return fmt.Sprintf("at most %d", n)
}

func decimal(q *resource.Quantity) string {
	if q == nil {
		return "-"
	}
	return fmt.Sprintf("%.2f", q.AsApproximateFloat64())
}

func percent(q resource.Quantity) string {
	return fmt.Sprintf("%.0f%%", 100*q.AsApproximateFloat64())
}

func span(d *metav1.Duration) string {
	if d == nil {
		return "-"
	}
	return age(d.Duration)
}

// age returns a duration in its two largest units.
func age(d time.Duration) string {
	switch d = d.Round(time.Second); {
	case d < 0:
		return "0s"
	case d < time.Hour:
		return short(d)
	case d < 48*time.Hour:
		return short(d.Round(time.Minute))
	default:
		return fmt.Sprintf("%dd", int(d.Hours()/24))
	}
}

// short returns a duration without units that are 0.
func short(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
