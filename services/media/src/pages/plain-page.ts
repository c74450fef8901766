import { htmlDocument } from './document.ts'
import type { Html } from './html.ts'

/** Nothing is loaded and nothing runs. */
export const plainPagePolicy = "default-src 'none'; frame-ancestors 'none'"

/** A page of text alone. Nothing is loaded and nothing runs. */
export const plainPage = (title: string, body: Html): string => htmlDocument({ title, body })
