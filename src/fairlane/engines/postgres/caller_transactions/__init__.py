"""Operations inside transactions of callers and handlers."""
