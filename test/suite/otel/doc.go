// Package otel has a real OpenTelemetry Collector between applications and Foresail.
package otel
