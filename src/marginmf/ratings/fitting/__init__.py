"""How factorisations are fitted: objectives, stages, hold-outs, priors, calibration, new rows."""
