import type { Field } from './inputs'
import { texts } from '../texts'

type Written = Record<string, string>

/** Fields shows the inputs of a form for a JSON Schema. */
export function Fields({
  fields,
  form,
  set,
}: {
  fields: Field[]
  form: Written
  set: (form: Written) => void
}) {
  return fields.map(f => (
    <Input
      key={f.name}
      field={f}
      value={form[f.name] ?? ''}
      set={v => set({ ...form, [f.name]: v })}
    />
  ))
}

function Input({
  field: f,
  value,
  set,
}: {
  field: Field
  value: string
  set: (v: string) => void
}) {
  const name = (
    <span>
      <b>{f.name}</b>{' '}
      <span className="faint">
        {f.kind}
        {f.required ? '' : `, ${texts.fields.optional}`}
      </span>
    </span>
  )
  return (
    <label>
      {name}
      {f.choices ? (
        <select value={value} onChange={e => set(e.target.value)} required={f.required}>
          {!f.required && <option value="" />}
          {f.choices.map(c => (
            <option key={c}>{c}</option>
          ))}
        </select>
      ) : f.kind === 'boolean' ? (
        <select value={value} onChange={e => set(e.target.value)}>
          {!f.required && <option value="" />}
          <option value="true">{texts.true}</option>
          <option value="false">{texts.false}</option>
        </select>
      ) : f.json ? (
        <textarea
          rows={3}
          value={value}
          onChange={e => set(e.target.value)}
          required={f.required}
          spellCheck={false}
        />
      ) : (
        <input
          value={value}
          onChange={e => set(e.target.value)}
          required={f.required}
          inputMode={f.kind === 'integer' || f.kind === 'number' ? 'decimal' : undefined}
          pattern={f.pattern}
        />
      )}
      {f.description && <span className="faint">{f.description}</span>}
    </label>
  )
}
