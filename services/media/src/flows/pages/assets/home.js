// The page at `/`: adds one clip, with edits, and shows it when it is ready; or several, see home/several.js.
import { caller, keepToken, lacksToken, resetForm } from './home/caller.js'
import { chosen, leaveOut } from './home/choose.js'
import { $, form } from './home/elements.js'
import { allowSliding, readFields } from './home/fields.js'
import { linkTo, waitUntilReady } from './home/follow.js'
import { asProblem, forgetProblems, Problem, showProblem } from './home/problems.js'
import { report, say } from './home/progress.js'
import { text } from './owner/page-data.js'
import { newKey } from './owner/request-keys.js'
import './home/from-clip.js'
import './home/resume.js'
import { showResult } from './home/result.js'
import { importFrom } from './home/send.js'
import { discardUpload, sendPieces } from './home/send-pieces.js'
import { queue, requireFile, startList } from './home/several.js'

let job

$('add').hidden = false

$('another').addEventListener('click', () => {
  $('preview').pause()
  $('done').hidden = true
  $('add').hidden = false
  leaveOut(chosen())
  resetForm()
  allowSliding()
  $('file').focus()
})
$('cancel').addEventListener('click', () => {
  if (!job) return
  job.abort(new Problem(text($('step').textContent === text('making') ? 'left' : 'cancelled')))
  discardUpload(job.place, caller().headers)
})

/** Returns the only file or address. Throws a Problem for input that can be refused before sending. */
function readSource() {
  if (lacksToken()) throw new Problem(text('pasteToken'), 'token')
  const [item] = chosen()
  if (!item) throw new Problem(text('chooseFirst'), 'file')
  if (item.file) requireFile(item.file)
  return item
}

form.addEventListener('submit', async (event) => {
  event.preventDefault()
  if (job || startList()) return
  forgetProblems()
  job = Object.assign(new AbortController(), { place: {} })
  const { signal, place } = job
  try {
    const { file, source } = readSource()
    keepToken()
    form.hidden = true
    $('work').hidden = false
    report(text(file ? 'uploading' : 'fetching'), file ? 0 : undefined)
    $('step').focus()
    const call = { ...caller(), fields: readFields(), signal, report, place, key: newKey() }
    const { result, state } = await (file ? sendPieces(file, call) : importFrom(source, call))
    const isPrivate = call.fields.visibility === 'private'
    const addresses = isPrivate ? await linkTo(result, call) : result
    if (state !== 'ready') await waitUntilReady(addresses, call, file ? 'file' : 'source')
    $('ends').hidden = !isPrivate
    showResult(addresses)
    say(text('ready'))
  } catch (error) {
    $('work').hidden = true
    form.hidden = false
    showProblem(asProblem(error))
  } finally {
    $('work').hidden = true
    form.hidden = false
    $('step').textContent = ''
    job = undefined
  }
})

addEventListener('beforeunload', (event) => {
  const isSending = job && $('step').textContent !== text('making')
  if (isSending || queue.isBusy()) event.preventDefault()
})
