import { createGuard, type Guard, type GuardOptions } from '@services/common/egress/ssrf-guard'
import { apiError } from '../../errors.ts'

/** Builds the guard of requests to sources. Its refusals are ApiError source_forbidden. */
export const createSourceGuard = (options: GuardOptions = {}): Guard =>
  createGuard({ ...options, refuse: (cause) => apiError('source_forbidden', { cause }) })
