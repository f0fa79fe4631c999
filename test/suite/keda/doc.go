// Package keda runs KEDA's operator and its metrics adapter, built from their module, on a control
// plane without containers. Its tests put Foresail behind them as an external scaler.
package keda
